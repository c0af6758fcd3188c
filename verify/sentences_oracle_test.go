//go:build oracle

package verify

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"kseg/format"
)

// outcome is what the real loader made of a trial.
type outcome struct {
	*trial
	first         string // its first line
	loaded        bool
	end           int64
	before, after map[string][]byte
	taken         []intact
	removed       int64 // logs
}

func readAll(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = raw
	}
	return files
}

func newOutcome(t *testing.T, c *trial, out string, taken []intact) *outcome {
	t.Helper()
	o := &outcome{trial: c, first: strings.SplitN(out, "\n", 2)[0], taken: taken, before: readAll(t, c.dir+".before"),
		after: readAll(t, c.dir)}
	if o.loaded = strings.HasPrefix(o.first, "loaded "); o.loaded {
		o.end, _ = strconv.ParseInt(strings.Fields(o.first)[2], 10, 64)
	}
	for name := range o.before {
		n := format.ParseFileName(name)
		if _, stays := o.after[name]; n.Kind == format.KindLog && !n.Leftover() && !stays {
			o.removed++
		}
	}
	return o
}

// sentences are what may be said of a start, and whether it is true; %[1] and on are the groups of the pattern.
var sentences = []struct {
	pattern *regexp.Regexp
	holds   func(o *outcome, file string, groups []string) bool
}{
	{regexp.MustCompile(` puts another log in its place`), func(o *outcome, file string, _ []string) bool {
		return !bytes.Equal(o.before[file], o.after[file])
	}},
	{regexp.MustCompile(` deletes the file(?:$|, with)`), func(o *outcome, file string, _ []string) bool {
		return o.after[file] == nil
	}},
	{regexp.MustCompile(` (makes|writes) a new file`), func(o *outcome, file string, _ []string) bool {
		return o.after[file] != nil && !bytes.Equal(o.after[file], o.before[file])
	}},
	{regexp.MustCompile(` reads the whole segment and makes the file$`), func(o *outcome, file string, _ []string) bool {
		return o.before[file] == nil && o.after[file] != nil
	}},
	{regexp.MustCompile(` makes an empty one$`), func(o *outcome, file string, _ []string) bool {
		return o.before[file] == nil && o.after[file] != nil && zeros(o.after[file])
	}},
	{regexp.MustCompile(` uses the file as it is$| leaves the file where it is$`), func(o *outcome, file string,
		_ []string) bool {
		return o.after[file] != nil && bytes.HasPrefix(o.after[file], bytes.TrimRight(o.before[file], "\x00"))
	}},
	{regexp.MustCompile(` cuts (?:the segment|the log|it) at byte (\d+)`), func(o *outcome, file string, g []string) bool {
		log := strings.SplitN(file, ".", 2)[0] + ".log"
		return strconv.Itoa(len(o.after[log])) == g[1] && len(o.before[log]) > len(o.after[log])
	}},
	{regexp.MustCompile(` cuts the file to (\d+) bytes?`), func(o *outcome, file string, g []string) bool {
		return strconv.Itoa(len(o.after[file])) == g[1]
	}},
	{regexp.MustCompile(` does not load the partition, and takes its log directory offline`),
		func(o *outcome, _ string, _ []string) bool { return strings.HasPrefix(o.first, "offline") }},
	{regexp.MustCompile(` does not load the partition, and the broker does not run`),
		func(o *outcome, _ string, _ []string) bool { return strings.HasPrefix(o.first, "stops") }},
	{regexp.MustCompile(` deletes (\d+) (?:later )?segments?`), func(o *outcome, _ string, g []string) bool {
		return strconv.FormatInt(o.removed, 10) == g[1]
	}},
	{regexp.MustCompile(`, with which ([\d,]+) offsets? from (\d+) to (\d+) go`), func(o *outcome, _ string,
		g []string) bool {
		for _, b := range o.taken {
			if fmt.Sprint(b.base) == g[2] || between(b, g[2], g[3]) {
				continue
			}
			return false
		}
		return true
	}},
	{regexp.MustCompile(` splits the segment`), func(o *outcome, file string, _ []string) bool {
		return o.loaded && len(o.after[file]) < len(o.before[file])
	}},
	{regexp.MustCompile(` keeps this as it is| does not look at it`), func(o *outcome, file string, _ []string) bool {
		return bytes.Equal(o.before[file], o.after[file])
	}},
	{regexp.MustCompile(` takes (\d+) for the log end offset`), func(o *outcome, _ string, g []string) bool {
		return fmt.Sprint(o.end) == g[1]
	}},
	{regexp.MustCompile(` puts it in its place, as (\S+)`), func(o *outcome, file string, g []string) bool {
		return o.after[file] == nil && o.after[g[1]] != nil
	}},
	{regexp.MustCompile(` and begins an empty log at offset (\d+)$`), func(o *outcome, _ string, g []string) bool {
		return fmt.Sprint(o.end) == g[1]
	}},
	{regexp.MustCompile(` deletes (\S+\.\w+), and offsets`), func(o *outcome, _ string, g []string) bool {
		return o.before[g[1]] != nil && o.after[g[1]] == nil
	}},
}

func between(b intact, first, last string) bool {
	from, _ := strconv.ParseInt(first, 10, 64)
	to, _ := strconv.ParseInt(last, 10, 64)
	return b.base >= from && b.next-1 <= to
}

// lies are the sentences about the start that are not true of it. heard counts all.
func (o *outcome) lies(heard map[string]int) []string {
	var lies []string
	for i := range o.found {
		f := &o.found[i]
		for _, s := range sentences {
			g := s.pattern.FindStringSubmatch(f.Message)
			if g == nil {
				continue
			}
			heard[s.pattern.String()]++
			if !s.holds(o, filepath.Base(f.File), g) {
				lies = append(lies, fmt.Sprintf("%q of %s (%s)", f.Message, f.File, o.first))
			}
		}
	}
	return lies
}
