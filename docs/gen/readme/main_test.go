package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestREADMEIsCurrent runs every example of the README and compares.
func TestREADMEIsCurrent(t *testing.T) { checkCurrent(t, "README.md", ".") }

// TestWorkshopIsCurrent runs every step of the workshop and compares.
func TestWorkshopIsCurrent(t *testing.T) {
	checkCurrent(t, filepath.Join("docs", "workshop.md"), filepath.Join("testdata", "logdirs", "4.4.0"))
}

// TestRunbookIsCurrent runs every command of the runbook and compares.
func TestRunbookIsCurrent(t *testing.T) { checkCurrent(t, filepath.Join("docs", "runbook.md"), ".") }

// TestTourIsCurrent runs every command of the tour and compares.
func TestTourIsCurrent(t *testing.T) { checkCurrent(t, filepath.Join("docs", "tour.md"), ".") }

// checkCurrent compares a page with what its commands print in folder.
func checkCurrent(t *testing.T, page, folder string) {
	t.Helper()
	t.Chdir("../../..")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	fresh, err := rewrite(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(text), fresh); diff != "" {
		t.Errorf("%s is not what kseg prints; run `make docs` and look at the change (-page +kseg):\n%s", page, diff)
	}
	if !strings.Contains(string(text), "$ kseg ") {
		t.Errorf("%s has no example", page)
	}
}

func TestRewriteReplacesOnlyOutputs(t *testing.T) {
	got, err := rewrite("before\n```console\n$ kseg help exit-codes | grep Exit | head " +
		"-1\nstale\n```\nafter\n```sh\nkseg dump x\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(got, "stale") || !strings.HasPrefix(got, "before\n```console\n$ kseg help exit-codes | grep "+
		"Exit | head -1\n# Exit codes\n") ||
		!strings.HasSuffix(got, "```\nafter\n```sh\nkseg dump x\n```\n") {
		t.Errorf("rewritten to %q", got)
	}
	for _, bad := range []string{"rm -rf x", "kseg no-such-verb", "kseg 'open"} {
		if _, err := rewrite("```console\n$ " + bad + "\n```"); err == nil {
			t.Errorf("example %q was taken", bad)
		}
	}
}
