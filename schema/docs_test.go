package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// docs/format/internal-topics.md lists every record type with its number and versions.
func TestDocsListEveryRecordType(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(fixture.Root(t)), "docs", "format", "internal-topics.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	c := tables()
	for topic := Offsets; topic < topicCount; topic++ {
		for _, r := range c.topics[topic] {
			if r == nil {
				continue
			}
			versions := fmt.Sprint(r.value.lowest)
			if r.value.highest > r.value.lowest {
				versions += fmt.Sprint("–", r.value.highest)
			}
			row := fmt.Sprintf("| %d | %s", r.typ, r.name)
			if topic != Transactions && topic != ShareState && !strings.Contains(page, row) {
				t.Errorf("no row %q", row)
			}
			if topic == Metadata && !strings.Contains(page, row+" | "+versions+" |") {
				t.Errorf("no row %q with versions %s", row, versions)
			}
			if !strings.Contains(page, r.name) {
				t.Errorf("%s is not mentioned", r.name)
			}
		}
	}
	for _, r := range c.control {
		if r.name != "EndTxnMarker" && !strings.Contains(page, r.name) {
			t.Errorf("%s is not mentioned", r.name)
		}
	}
}
