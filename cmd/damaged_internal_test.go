package cmd_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// foldOf says which verb folds an internal topic, and how.
var foldOf = map[string][]string{
	"__consumer_offsets-0":  {"groups"},
	"__share_group_state-0": {"groups"},
	"__transaction_state-0": {"txn", "--all"},
	"__cluster_metadata-0":  {"metadata"},
}

// Whatever becomes of an internal topic, each line is that of the sound one, or marked as unsure, and the exit code is
// 1 where lines are missing or marked.
func TestDamagedInternalTopics(t *testing.T) {
	for _, base := range strings.Fields(os.Getenv("KSEG_INTERNAL") + " 4.4.0/internal 4.4.0/transactions") {
		root := filepath.Join(t.TempDir(), "sound")
		if filepath.IsAbs(base) {
			if err := os.CopyFS(root, os.DirFS(base)); err != nil {
				t.Fatal(err)
			}
		} else if err := fixture.Copy(root, base); err != nil {
			t.Fatal(err)
		}
		for name, verb := range foldOf {
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				continue
			}
			split(t, filepath.Join(root, name), 4)
			sound := foldLines(t, root, verb)
			for seed := range uint64(fixture.Times(20, 60)) {
				t.Run(fmt.Sprintf("%s/%s/%d", filepath.Base(base), name, seed), func(t *testing.T) {
					dir := filepath.Join(t.TempDir(), "hurt")
					if err := os.CopyFS(dir, os.DirFS(root)); err != nil {
						t.Fatal(err)
					}
					what := hurt(t, rand.New(rand.NewPCG(seed, 9)), filepath.Join(dir, name))
					checkFold(t, what, dir, verb, sound, root)
				})
			}
		}
	}
}

// split cuts the logs of a partition into so many segments each, without indexes.
func split(t *testing.T, dir string, n int) {
	t.Helper()
	for _, name := range globNames(t, dir, "*.log") {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var part []byte
		at := format.ParseFileName(filepath.Base(name)).Base
		end := at
		write := func() {
			if err := os.WriteFile(filepath.Join(dir, format.SegmentFileName(at, format.KindLog)), part, 0o644); err != nil {
				t.Fatal(err)
			}
			part, at = nil, end
		}
		for s := format.NewScanner(data, 0, at); s.Next(); {
			b := s.Batch()
			if b == nil {
				continue
			}
			part, end = append(part, b.Raw...), b.NextOffset()
			if len(part) > len(data)/n {
				write()
			}
		}
		write()
		for _, index := range globNames(t, dir, "*index") {
			if err := os.Remove(index); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func globNames(t *testing.T, dir, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// hurt flips a byte, puts zeros over some, cuts or removes one of the files of a partition that are folded.
func hurt(t *testing.T, r *rand.Rand, dir string) (what string) {
	t.Helper()
	files := append(globNames(t, dir, "*.log"), globNames(t, dir, "*.checkpoint")...)
	name := files[r.IntN(len(files))]
	data, err := os.ReadFile(name)
	if err != nil || len(data) == 0 {
		return "nothing"
	}
	at := r.IntN(len(data))
	switch r.IntN(4) {
	case 0:
		data[at] ^= byte(1 << r.IntN(8))
		what = fmt.Sprintf("a bit of %s at byte %d is flipped", filepath.Base(name), at)
	case 1:
		clear(data[at:min(len(data), at+1+r.IntN(300))])
		what = fmt.Sprintf("zeros in %s at byte %d", filepath.Base(name), at)
	case 2:
		data = data[:at]
		what = fmt.Sprintf("%s is cut at byte %d", filepath.Base(name), at)
	default:
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		return filepath.Base(name) + " is gone"
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return what
}

// lines are what a verb says: the lines that can be unsure, by their words without what tells where they come from, and
// the other objects by their kind.
type lines struct {
	values map[string]bool // whether the line is sure
	others map[string]map[string]any
	code   int
	stderr string
}

func foldLines(t *testing.T, dir string, verb []string) lines {
	t.Helper()
	out, stderr, code := kseg(append(append([]string{}, verb...), "-o", "json", "--now", "2027-01-01T00:00:00Z", dir)...)
	l := lines{values: map[string]bool{}, others: map[string]map[string]any{}, code: code, stderr: stderr}
	for text := range strings.Lines(out) {
		var o map[string]any
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		unsure, can := o["unsure"]
		if !can {
			l.others[o["kind"].(string)] = o
			continue
		}
		for _, key := range []string{"unsure", "source", "snapshot", "log_dir"} {
			delete(o, key)
		}
		if verb[0] == "metadata" { // where a value was last said depends on the snapshot that is begun with
			for _, key := range []string{"offset", "timestamp", "timestamp_utc"} {
				delete(o, key)
			}
			if o["kind"] == "producer_ids" {
				delete(o, "broker_id") // a snapshot does not have it
			}
		}
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		l.values[string(raw)] = unsure == false || unsure == nil
	}
	return l
}

func checkFold(t *testing.T, what, dir string, verb []string, sound lines, root string) {
	t.Helper()
	got := foldLines(t, dir, verb)
	early := lines{values: sound.values}
	if end := got.others["metadata_image"]; end != nil && len(end["lost"].([]any)) == 0 {
		// Nobody can tell a metadata log that ends early from one that never went further: it is one as of its end.
		early = foldLines(t, root, []string{"metadata", "--at", fmt.Sprint(int64(end["end_offset"].(float64)) - 1)})
	}
	same := true
	for line, sure := range got.values {
		_, known := sound.values[line]
		_, was := early.values[line]
		asOf := len(early.others) > 0 && strings.Contains(line, `"kind":"misplaced"`) // what is on disk is of today
		if !known && !was && sure && !asOf {
			t.Errorf("%s: not marked, and not in what is sound:\n%s\n%s", what, line, got.stderr)
		}
		same = same && sure
	}
	for line := range early.values {
		_, there := got.values[line]
		same = same && there
	}
	if !same && got.code == 0 {
		t.Errorf("%s: exit code 0, though lines are missing or unsure: %s", what, got.stderr)
	}
}
