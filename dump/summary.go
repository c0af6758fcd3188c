package dump

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kseg/logdir"
	"kseg/render"
)

// pair is two numbers of a line in the real tool's closing summaries.
type pair struct{ first, second int64 }

// summary collects what the real tool says on stderr after all files.
type summary struct {
	mismatches   findings // .index: the entry's offset, the batch's last offset
	timestamps   findings // .timeindex: the entry's timestamp, the batch's
	outOfOrder   findings // .timeindex: the entry's timestamp, the one before
	notFound     findings // .timeindex: the entry's offset, the offset found
	gaps         findings // .log: a record's offset, the next one's
	last         int64    // offset of the last record, -1 at the beginning of a file
	lastGapsFile string
}

// findings are the pairs of each file, by absolute path.
type findings struct {
	paths []string
	pairs map[string][]pair
	table int // buckets of the java.util.HashMap that the real tool keeps
}

func (f *findings) add(path string, first, second int64) {
	switch {
	case f.pairs == nil:
		f.pairs, f.table = map[string][]pair{}, 16
	case len(f.paths)*4 > f.table*3:
		f.table *= 2 // HashMap.computeIfAbsent looks at this when it is called, not when it has added a key
	}
	if _, ok := f.pairs[path]; !ok {
		f.paths = append(f.paths, path)
	}
	f.pairs[path] = append(f.pairs[path], pair{first, second})
}

// gaps are the record offsets of one run that do not follow each other.
type gaps struct {
	first, last int64
	any         bool
	pairs       []pair
}

func (g *gaps) reset() { g.any, g.pairs = false, g.pairs[:0] }

func (g *gaps) add(offset int64) {
	switch {
	case !g.any:
		g.first, g.any = offset, true
	case offset != g.last+1:
		g.pairs = append(g.pairs, pair{g.last, offset})
	}
	g.last = offset
}

// addGaps takes over a run's gaps, in the order of the file.
func (s *summary) addGaps(f *logdir.File, g *gaps) {
	if !g.any {
		return
	}
	path := absolute(f.Path)
	if path != s.lastGapsFile {
		s.lastGapsFile, s.last = path, -1
	}
	if g.first != s.last+1 {
		s.gaps.add(path, s.last, g.first)
	}
	for _, p := range g.pairs {
		s.gaps.add(path, p.first, p.second)
	}
	s.last = g.last
}

// absolute is what Java's File.getAbsolutePath makes of a path: it puts the working directory before it and removes
// doubled slashes, but keeps "." and "..".
func absolute(path string) string {
	if !filepath.IsAbs(path) {
		if wd, err := os.Getwd(); err == nil {
			path = wd + "/" + path
		}
	}
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

// printSummaries writes the closing summaries, in the real tool's order and form.
func (d *dumper) printSummaries() {
	s := &d.summary
	var out bytes.Buffer
	for _, path := range s.mismatches.javaOrder() {
		pairs := s.mismatches.pairs[path]
		fmt.Fprintf(&out, "Mismatches in :%s\n", d.onStderr(path))
		for i := len(pairs) - 1; i >= 0; i-- {
			fmt.Fprintf(&out, "  Index offset: %d, log offset: %d\n", pairs[i].first, pairs[i].second)
		}
	}
	s.timestamps.print(d, &out, "Found timestamp mismatch in :%s\n", "  Index timestamp: %d, log timestamp: %d\n")
	s.outOfOrder.print(d, &out, "Found out of order timestamp in :%s\n", "  Index timestamp: %d, Previously indexed "+
		"timestamp: %d\n")
	s.notFound.print(d, &out, "The following indexed offsets are not found in :%s\n",
		"Indexed offset: %d, found log offset: %d\n")
	for path, pairs := range s.gaps.pairs {
		s.gaps.pairs[path] = d.mapped(pairs)
	}
	s.gaps.print(d, &out, "Non-consecutive offsets in %s\n", "  %d is followed by %d\n")
	d.errOut.Write(out.Bytes())
}

// mapped brings gaps into the order of the real tool's sorted map, in which a later pair replaces an earlier one of the
// same first offset. Its false alarm, the pair that begins with -1, is left out unless its stderr is wanted.
func (d *dumper) mapped(pairs []pair) []pair {
	slices.SortStableFunc(pairs, func(a, b pair) int {
		switch {
		case a.first < b.first:
			return -1
		case a.first > b.first:
			return 1
		}
		return 0
	})
	kept := pairs[:0]
	for i, p := range pairs {
		replaced := i+1 < len(pairs) && pairs[i+1].first == p.first
		if !replaced && (p.first >= 0 || d.opts.Compat) {
			kept = append(kept, p)
		}
	}
	return kept
}

func (f *findings) print(d *dumper, out *bytes.Buffer, head, line string) {
	for _, path := range f.javaOrder() {
		if len(f.pairs[path]) == 0 {
			continue
		}
		fmt.Fprintf(out, head, d.onStderr(path))
		for _, p := range f.pairs[path] {
			fmt.Fprintf(out, line, p.first, p.second)
		}
	}
}

// onStderr is a path as stderr shows it: as it is, like the real tool's, but not on a terminal.
func (d *dumper) onStderr(path string) string {
	if d.opts.StderrTerminal {
		return render.Escaped(path)
	}
	return path
}

// javaOrder is the order in which a java.util.HashMap lists the paths: by bucket; in a bucket, the latest key first.
func (f *findings) javaOrder() []string {
	buckets := make([][]string, f.table)
	for _, k := range f.paths {
		at := javaHash(k) & uint32(f.table-1)
		buckets[at] = append([]string{k}, buckets[at]...)
	}
	return slices.Concat(buckets...)
}

// javaHash is String.hashCode over UTF-16 units, spread as HashMap does.
func javaHash(s string) uint32 {
	var h uint32
	for _, r := range s {
		if r >= 0x10000 {
			r -= 0x10000
			h = (h*31+uint32(0xd800+r>>10))*31 + uint32(0xdc00+r&0x3ff)
			continue
		}
		h = h*31 + uint32(r)
	}
	return h ^ h>>16
}
