package verify

import (
	"path/filepath"
	"slices"
	"testing"

	"kseg/internal/fixture"
)

// A log that is gone, of which an index is left, is missed even where it held the last offset of the gap alone.
func TestIndexOfTheLastOffsetOfAGap(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t-0")
	mkdir(t, dir)
	batch := func(offset int64) []byte {
		return fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Offset: offset}}})
	}
	writeFile(t, filepath.Join(dir, "00000000000000000000.log"), batch(0))
	writeFile(t, filepath.Join(dir, "00000000000000000004.index"), nil)
	writeFile(t, filepath.Join(dir, "00000000000000000005.log"), batch(5))
	found, _ := runOn(t, Options{Level: Records}, dir)
	if !slices.ContainsFunc(found, func(f Finding) bool { return f.Code == "segment-log-missing" }) {
		t.Errorf("%+v", found)
	}
}
