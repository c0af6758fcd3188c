//go:build oracle

package cmd

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// orders are ways to copy the files of a log directory one by one.
var orders = map[string]func(rng *rand.Rand, files []string){
	"by name":  func(_ *rand.Rand, files []string) { slices.Sort(files) },
	"backward": func(_ *rand.Rand, files []string) { slices.Sort(files); slices.Reverse(files) },
	"checkpoints last": func(_ *rand.Rand, files []string) {
		slices.SortFunc(files, func(a, b string) int {
			return strings.Compare(rank(a)+a, rank(b)+b)
		})
	},
	"indexes before logs": func(_ *rand.Rand, files []string) {
		slices.SortFunc(files, func(a, b string) int { return strings.Compare(filepath.Ext(a)+a, filepath.Ext(b)+b) })
	},
	"at random": func(rng *rand.Rand, files []string) {
		rng.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	},
}

// rank puts the files of a log directory itself after those of its partitions.
func rank(name string) string {
	if strings.Contains(name, "/") {
		return "0"
	}
	return "1"
}

// copyOneByOne copies what is listed at the beginning, with a pause now and then; what has gone meanwhile is left out.
func copyOneByOne(t *testing.T, from, to string, order func(*rand.Rand, []string), rng *rand.Rand) {
	t.Helper()
	var files []string
	_ = filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != ".lock" {
			files = append(files, strings.TrimPrefix(name, from+"/"))
		}
		return nil
	})
	order(rng, files)
	for i, name := range files {
		raw, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), raw, 0o644); err != nil {
			t.Fatal(err)
		}
		if i%20 == 0 {
			time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond)
		}
	}
}

var incompleteFrom = regexp.MustCompile(`\S+ from offset \d+|and \d+ more`)

// TestOracleCopiesOfALiveBroker copies the log directory of a broker under load file by file, in several orders. Where
// predict says that a start on a copy loses something verify finds damage, the sentence about the copy names what is
// incomplete, and a copy of one moment is clean.
func TestOracleCopiesOfALiveBroker(t *testing.T) {
	l := newLoaded(t)
	l.start()
	time.Sleep(5 * time.Second)
	rng := rand.New(rand.NewPCG(1, 1))
	copies, incomplete := 0, 0
	for range number(t, "KSEG_ORACLE_ROUNDS", 1) {
		for name, order := range orders {
			to := filepath.Join(t.TempDir(), "copy")
			copyOneByOne(t, l.data, to, order, rng)
			var out, errs, predicted bytes.Buffer
			code := Main([]string{"verify", "-o", "json", to}, strings.NewReader(""), &out, &errs)
			loses := Main([]string{"predict", to}, strings.NewReader(""), &predicted, &predicted)
			worse, _ := findings(t, out.Bytes())
			named := incompleteFrom.FindAllString(errs.String(), -1)
			copies, incomplete = copies+1, incomplete+len(named)
			t.Logf("%s: %s%d findings above a note", name, errs.String(), len(worse))
			ends := slices.ContainsFunc(worse, func(f string) bool { return strings.HasPrefix(f, "damage log-end-missing") })
			if code == 3 || code == 0 && loses != 0 || ends && len(named) == 0 {
				t.Errorf("%s: verify ends with %d, predict with %d\n%s%s", name, code, loses, strings.Join(worse, "\n"),
					predicted.String())
			}
			if err := os.RemoveAll(to); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d copies, %d incomplete partitions", copies, incomplete)
}
