package format_test

import (
	"fmt"
	"strings"
	"testing"

	"kseg/format"
)

// LeaderEpochFileCache at its edges: what begins where the log is cut goes; of what begins up to the log start the
// last stays; the same epoch again, at its offset or after it, is no new one.
func TestEdgesOfTheEpochCache(t *testing.T) {
	type cache = format.EpochCache
	assign := func(epoch int32, offset int64) func(*cache) bool {
		return func(c *cache) bool { return c.Assign(format.EpochEntry{Epoch: epoch, StartOffset: offset}) }
	}
	end := func(offset int64) func(*cache) bool { return func(c *cache) bool { return c.CutEnd(offset) } }
	start := func(offset int64) func(*cache) bool { return func(c *cache) bool { return c.CutStart(offset) } }
	for name, c := range map[string]struct {
		change  func(*cache) bool
		changes bool
		want    string
	}{
		"cut after the last":    {end(21), false, "1@0 2@10 4@20"},
		"cut at the last":       {end(20), true, "1@0 2@10"},
		"begin before all":      {start(-1), false, "1@0 2@10 4@20"},
		"begin before another":  {start(9), true, "1@9 2@10 4@20"},
		"begin at another":      {start(10), true, "2@10 4@20"},
		"the last again":        {assign(4, 20), false, "1@0 2@10 4@20"},
		"the last again, later": {assign(4, 21), false, "1@0 2@10 4@20"},
		"the last, earlier":     {assign(4, 19), true, "1@0 2@10 4@19"},
		"one that displaces":    {assign(5, 10), true, "1@0 5@10"},
	} {
		got := cache{{Epoch: 1, StartOffset: 0}, {Epoch: 2, StartOffset: 10}, {Epoch: 4, StartOffset: 20}}
		changed := c.change(&got)
		var texts []string
		for _, e := range got {
			texts = append(texts, fmt.Sprintf("%d@%d", e.Epoch, e.StartOffset))
		}
		if text := strings.Join(texts, " "); changed != c.changes || text != c.want {
			t.Errorf("%s: %v, %s", name, changed, text)
		}
	}
}
