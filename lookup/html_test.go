package lookup

import (
	"context"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// TestPage: every probe, hop and the hit is a step, all is drawn, and a browser has nothing to complain of.
func TestPage(t *testing.T) {
	p := openOne(t, fixture.Dir(t, "4.4.0/segments-316/clean/seg-4096-0"))
	for name, find := range map[string]func() (*Result, error){
		"offset":    func() (*Result, error) { return p.LookupOffset(context.Background(), 4930, Options{}) },
		"timestamp": func() (*Result, error) { return p.LookupTimestamp(context.Background(), 1700000000000, Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			r, err := find()
			if err != nil {
				t.Fatal(err)
			}
			page := string(r.Page())
			try := r.last()
			steps := strings.Count(page, "<li id=\"step-")
			drawn := strings.Count(page, "data-step=")
			if least := len(try.Index.Search.Probes) + len(try.Hops) + 1; drawn < least || steps < least+1 {
				t.Errorf("%d steps and %d boxes for %d probes and hops", steps, drawn, least)
			}
			if !testing.Short() {
				fixture.CheckPage(t, []byte(page))
			}
		})
	}
}
