package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestREADMEIsCurrent runs every example of the README and compares.
func TestREADMEIsCurrent(t *testing.T) {
	t.Chdir("../../..")
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := rewrite(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(text), fresh); diff != "" {
		t.Errorf("README.md is not what kseg prints; run `make docs` and look at the change (-README +kseg):\n%s", diff)
	}
	if !strings.Contains(string(text), "$ kseg ") {
		t.Error("the README has no example")
	}
}

func TestRewriteReplacesOnlyOutputs(t *testing.T) {
	got, err := rewrite("before\n```console\n$ kseg help exit-codes | head -1\nstale\n```\nafter\n```sh\nkseg dump x\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(got, "stale") || !strings.HasPrefix(got, "before\n```console\n$ kseg help exit-codes | head -1\n") ||
		!strings.HasSuffix(got, "```\nafter\n```sh\nkseg dump x\n```\n") {
		t.Errorf("rewritten to %q", got)
	}
	for _, bad := range []string{"rm -rf x", "kseg no-such-verb", "kseg 'open"} {
		if _, err := rewrite("```console\n$ " + bad + "\n```"); err == nil {
			t.Errorf("example %q was taken", bad)
		}
	}
}
