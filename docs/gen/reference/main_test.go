package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocsAreFresh holds that docs/ has what the program says of itself today.
func TestDocsAreFresh(t *testing.T) {
	docs := filepath.Join("..", "..")
	to := t.TempDir()
	if err := write(docs, to); err != nil {
		t.Fatal(err)
	}
	fresh := map[string]bool{}
	err := fs.WalkDir(os.DirFS(to), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		fresh[name] = true
		want, err := os.ReadFile(filepath.Join(to, name))
		if err != nil {
			return err
		}
		if got, err := os.ReadFile(filepath.Join(docs, name)); err != nil || string(got) != string(want) {
			t.Errorf("docs/%s is stale (%v): run make docs", name, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"cli", "man"} {
		entries, err := os.ReadDir(filepath.Join(docs, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !fresh[folder+"/"+e.Name()] {
				t.Errorf("docs/%s/%s belongs to no command: run make docs", folder, e.Name())
			}
		}
	}
}

func TestWithKinds(t *testing.T) {
	schema := `{"properties": {"kind": {"enum": ["b", "a"]}}, "$defs": {
		"a": {"title": "dump", "description": "Nothing."},
		"b": {"title": "ls", "description": "All.", "properties": {
			"z": {"type": "integer", "description": "bytes"},
			"y": {"type": ["string", "null"]},
			"x": {"enum": ["hot", null]},
			"w": {"type": "array", "items": {"type": "object", "properties": {"p": {"type": "boolean"}, "o": {}}}},
			"v": {"anyOf": [{"$ref": "#/$defs/bytes"}, {"type": "null"}]},
			"u": {}
		}}}}`
	page := "top\n" + kindsBegin + "stale\n" + kindsEnd + "bottom\n"
	got, err := withKinds(page, []byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	want := "top\n" + kindsBegin + strings.Join([]string{
		"", "### b", "", "From `kseg ls`. All.", "", "| name | value | |", "|---|---|---|",
		"| `z` | number | bytes |", "| `y` | string or null |  |", "| `x` | `hot`, null |  |", "| `w` | list of {p, o} |  |",
		"| `v` | bytes or null |  |", "| `u` | any |  |",
		"", "### a", "", "From `kseg dump`. Nothing.", "", "",
	}, "\n") + kindsEnd + "bottom\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := withKinds("no marks", []byte(schema)); err == nil {
		t.Error("a page without the marks was taken")
	}
}
