package verify

import (
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// An entry whose last stable offset is too high is judged by what a search makes of it: damage if it hides a later
// entry.
func TestLastStableOffset(t *testing.T) {
	for _, c := range []struct {
		file string
		slot int
		want string
	}{
		{"00000000000000000000.txnindex", 1, "damage txnindex-entry 00000000000000000000.txnindex 34"},
		{"00000000000000000169.txnindex", 2, "note txnindex-entry 00000000000000000169.txnindex 68"},
	} {
		dir := fixture.Dir(t, txnBase)
		base := lines(t, dir, nil)
		index := fixture.Data(t, txnBase+"/"+c.file)
		binary.BigEndian.PutUint64(index[c.slot*txnSlot+26:], 1<<62)
		writeFile(t, filepath.Join(dir, c.file), index)
		if found := lines(t, dir, base); len(found) != 1 || !strings.HasPrefix(found[0], c.want) {
			t.Errorf("%s, entry %d: %v", c.file, c.slot, found)
		}
	}
}
