package verify

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// line is a finding as a line of testdata/damage/expected.txt, without the reason.
func line(f *Finding) string {
	position := "-"
	if f.Pos >= 0 {
		position = itoa(f.Pos)
	}
	offsets := strings.ReplaceAll(offsetsText(&f.Place), "–", "-")
	if offsets == "" {
		offsets = "-"
	}
	return fmt.Sprintf("%s %s %s %s %s", f.Severity, f.Code, f.File, position, offsets)
}

// expectations reads testdata/damage/expected.txt: the findings of each recipe that its healthy base lacks.
func expectations(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(fixture.Root(t), "damage", "expected.txt"))
	if err != nil {
		t.Fatal(err)
	}
	expected := map[string][]string{}
	scan := bufio.NewScanner(bytes.NewReader(text))
	for scan.Scan() {
		fields := strings.Fields(scan.Text())
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if len(fields) < 7 {
			t.Fatalf("expected.txt: a line without a reason: %s", scan.Text())
		}
		expected[fields[0]] = append(expected[fields[0]], strings.Join(fields[1:6], " "))
	}
	return expected
}

// Each recipe gives exactly the findings of its lines, besides those of its healthy base, whatever the number of jobs
// and wherever the runs are cut.
func TestDamage(t *testing.T) {
	expected := expectations(t)
	base := map[string][]string{}
	for _, r := range fixture.Recipes(t) {
		if base[r.Base] == nil {
			found, _ := runOn(t, Options{Level: Records}, fixture.Dir(t, r.Base))
			for i := range found {
				base[r.Base] = append(base[r.Base], line(&found[i]))
			}
		}
		healthy := base[r.Base]
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			dir := fixture.Damaged(t, r.Name)
			for _, o := range []Options{{Jobs: 1}, {Jobs: 2}, {Jobs: 1, run: 1}, {Jobs: 2, run: 1}, {Jobs: 3, run: 1000}} {
				o.Level = Records
				found, summary := runOn(t, o, dir)
				var got []string
				for i := range found {
					if text := line(&found[i]); !slices.Contains(healthy, text) {
						got = append(got, text)
					}
				}
				if want := expected[r.Name]; !slices.Equal(got, want) {
					t.Errorf("%d jobs, runs of %v: got\n\t%s\nwant\n\t%s", o.Jobs, o.run, strings.Join(got, "\n\t"),
						strings.Join(want, "\n\t"))
				}
				if len(summary.NotRead) > 0 {
					t.Errorf("not read: %v", summary.NotRead)
				}
			}
		})
	}
}
