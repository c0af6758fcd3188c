//go:build oracle

package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kseg/internal/fixture"
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

// ways are those in which people copy the directory of a broker that runs: from one path to another, which is there.
func ways(t *testing.T, rng *rand.Rand) map[string]func(from, to string) {
	command := func(line string) func(string, string) {
		return func(from, to string) {
			// What vanishes meanwhile makes them fail, after they have copied all else.
			_ = exec.Command("sh", "-c", strings.NewReplacer("FROM", from, "TO", to).Replace(line)).Run()
		}
	}
	all := map[string]func(from, to string){
		"cp -r": command("cp -r FROM/. TO"),
		"tar":   command("tar -C FROM -cf - . | tar -C TO -xf -"),
		"tar of partitions, then of checkpoints": command("cd FROM && tar -cf - */ | tar -C TO -xf -; sleep 2; " +
			"tar -cf - *checkpoint meta.properties | tar -C TO -xf -"),
		"cp twice": command("cp -r FROM/. TO; sleep 2; cp -ru FROM/. TO"),
	}
	for name, order := range orders {
		all[name] = func(from, to string) { copyOneByOne(t, from, to, order, rng) }
	}
	return all
}

var (
	incompleteFrom = regexp.MustCompile(`\S+ from offset \d+|and \d+ more`)
	loadedLine     = regexp.MustCompile(`Completed load of Log\(dir=(.+?), (?:topicId=.*?, )?topic=.*` +
		`logStartOffset=(\d+), logEndOffset=(\d+)\) with (\d+) segments`)
)

// TestOracleCopiesOfALiveBroker copies the log directory of a broker under load in several ways and orders, and then
// starts a real broker on each copy. The broker does what predict says, partition by partition. Where predict says that
// a start on a copy loses something verify finds damage, and the sentence about the copy names what is incomplete.
func TestOracleCopiesOfALiveBroker(t *testing.T) {
	l := newLoaded(t)
	l.start()
	time.Sleep(5 * time.Second)
	rng := rand.New(rand.NewPCG(1, 1))
	copies, names := map[string]string{}, []string{}
	for round := range number(t, "KSEG_ORACLE_ROUNDS", 1) {
		for name, way := range ways(t, rng) {
			name = fmt.Sprint(name, " ", round)
			to := filepath.Join(t.TempDir(), "copy")
			if err := os.Mkdir(to, 0o755); err != nil {
				t.Fatal(err)
			}
			way(l.data, to)
			_ = os.Remove(filepath.Join(to, ".lock"))
			copies[name], names = to, append(names, name)
		}
	}
	l.kill()
	incomplete, agree, partitions := 0, 0, 0
	for _, name := range names {
		to := copies[name]
		var out, errs, predicted bytes.Buffer
		code := Main([]string{"verify", "-o", "json", to}, strings.NewReader(""), &out, &errs)
		loses := Main([]string{"predict", "-o", "json", to}, strings.NewReader(""), &predicted, &errs)
		worse, _ := findings(t, out.Bytes())
		named := incompleteFrom.FindAllString(errs.String(), -1)
		incomplete += len(named)
		t.Logf("%s: %s%d findings above a note", name, errs.String(), len(worse))
		ends := slices.ContainsFunc(worse, func(f string) bool { return strings.HasPrefix(f, "damage log-end-missing") })
		if code == 3 || code == 0 && loses != 0 || ends && len(named) == 0 {
			t.Errorf("%s: verify ends with %d, predict with %d\n%s%s", name, code, loses, strings.Join(worse, "\n"),
				&predicted)
		}
		n, wrong := l.startOn(to, predicted.String())
		if partitions += n; len(wrong) > 0 {
			t.Errorf("%s:\n  %s", name, strings.Join(wrong, "\n  "))
		} else {
			agree++
		}
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d copies, %d incomplete partitions; of %d copies with %d partitions a real broker makes what predict said",
		len(copies), incomplete, agree, partitions)
}

// startOn starts a real broker on a copy, and compares what it loads with what was predicted.
func (l *loaded) startOn(dir, predicted string) (partitions int, wrong []string) {
	data := l.data
	l.data = dir
	b := fixture.StartBroker(l.t, l.java, l.properties())
	l.data = data
	said, started := b.Output.Until("Kafka Server started", 1)
	b.Stop(syscall.SIGKILL)
	real, ours, aside := map[string]string{}, map[string]string{}, map[string]bool{}
	for _, m := range loadedLine.FindAllStringSubmatch(said, -1) {
		real[m[1]] = strings.Join(m[2:], " ")
	}
	for line := range strings.Lines(predicted) {
		var p struct {
			Kind, Path, Topic, Outcome string
			Stray                      *string
			Starts                     bool
			Start                      *int64 `json:"log_start_offset"`
			End                        *int64 `json:"log_end_offset"`
			Segments                   int
		}
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			l.t.Fatal(err)
		}
		switch {
		case p.Kind == "predicted_broker" && p.Starts != started:
			return 0, []string{fmt.Sprintf("it starts: %v, predicted: %v\n%s", started, p.Starts, tail(said))}
		case p.Kind == "predicted_start" && p.Topic != "__cluster_metadata" && p.Start != nil && p.End != nil:
			ours[p.Path] = fmt.Sprint(*p.Start, " ", *p.End, " ", p.Segments)
			aside[p.Path] = p.Stray != nil
		}
	}
	if !started {
		return 0, nil
	}
	for path, want := range ours {
		for other := range real {
			if aside[path] && strings.HasPrefix(other, path+".") && strings.HasSuffix(other, "-stray") {
				path = other
			}
		}
		if real[path] != want {
			wrong = append(wrong, fmt.Sprintf("%s: %q, predicted %q", filepath.Base(path), real[path], want))
		}
	}
	return len(ours), wrong
}

// tail is the end of a long text.
func tail(text string) string { return text[max(0, len(text)-1500):] }
