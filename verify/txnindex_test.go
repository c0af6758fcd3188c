package verify

import (
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// An entry whose last stable offset is too high is judged by what a search makes of it: damage if it hides a later entry.
func TestLastStableOffset(t *testing.T) {
	for _, c := range []struct {
		offset int64
		want   string
	}{
		{8, "note txnindex-entry 00000000000000000000.txnindex 34"},
		{1 << 62, "damage txnindex-entry 00000000000000000000.txnindex 34"},
	} {
		dir := fixture.Dir(t, txnBase)
		base := lines(t, dir, nil)
		name := filepath.Join(dir, "00000000000000000000.txnindex")
		index := fixture.Data(t, txnBase+"/00000000000000000000.txnindex")
		binary.BigEndian.PutUint64(index[60:], uint64(c.offset))
		writeFile(t, name, index)
		found := lines(t, dir, base)
		if len(found) != 1 || !strings.HasPrefix(found[0], c.want) {
			t.Errorf("%d: %v", c.offset, found)
		}
	}
}
