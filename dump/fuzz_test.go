package dump

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"kseg/internal/fixture"
	"kseg/logdir"
)

// FuzzLog prints arbitrary bytes as a segment in every form. It must not panic, must end, and what it prints must be
// bounded by what it read.
func FuzzLog(f *testing.F) {
	for _, name := range fixture.Files(f, ".log") {
		if data := fixture.Data(f, name); len(data) < 20<<10 {
			f.Add(data, true)
			f.Add(data[:len(data)*2/3], false)
		}
	}
	path := filepath.Join(f.TempDir(), "__consumer_offsets-0", "00000000000000000000.log")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, deep bool) {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		set, err := logdir.Open([]string{path}, logdir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, output := range []Output{Text, JSON} {
			for _, compat := range []bool{false, true} {
				o := defaults()
				o.Output, o.Data, o.Deep, o.Compat, o.MaxBatchBytes = output, deep, deep, compat, 1<<20
				if _, err := Run(context.Background(), set, o, discard{}, discard{}); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
