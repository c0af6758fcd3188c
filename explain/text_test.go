package explain

import (
	"strings"
	"testing"

	"kseg/internal/fixture"
	"kseg/render"
)

// TestNarrowTerminals: meanings are wrapped to the terminal; what is shown stays the same, word for word.
func TestNarrowTerminals(t *testing.T) {
	const name = "4.4.0/transactions/ledger-0/00000000000000000000.log"
	wide := runText(t, name, Options{All: true})
	for _, width := range []int{40, 60, 80, 100, 120, 200} {
		text := runText(t, name, Options{All: true, Width: width})
		for line := range strings.Lines(text) {
			if got := render.Width(strings.TrimRight(line, "\n")); got > width && width >= 60 && !strings.Contains(line, ", batch at byte") {
				t.Fatalf("%d columns on a terminal of %d: %s", got, width, line)
			}
		}
		for _, word := range []string{"lastOffsetDelta", "COMMIT:", "control:", "fenced"} {
			if want, got := strings.Count(wide, word), strings.Count(text, word); got != want {
				t.Errorf("width %d: %q is there %d times, else %d", width, word, got, want)
			}
		}
	}
}

// TestTerse leaves meanings out, and nothing else.
func TestTerse(t *testing.T) {
	const name = "4.4.0/hello/hello-0/00000000000000000000.log"
	full, terse := runText(t, name, Options{}), runText(t, name, Options{Terse: true})
	if strings.Contains(terse, "meaning") || strings.Contains(terse, "set by the leader") {
		t.Errorf("terse:\n%s", terse)
	}
	for line := range strings.Lines(terse) {
		if !strings.Contains(line, ", batch at byte") && !strings.Contains(full, strings.TrimRight(line, "\n")) {
			t.Errorf("only in terse: %s", line)
		}
	}
}

func runText(t *testing.T, name string, opts Options) string {
	t.Helper()
	text, _, err := runFile(t, name, fixture.Data(t, name), opts)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
