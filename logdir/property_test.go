package logdir

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kseg/format"
)

// TestEveryFileIsFoundOnce makes log directories of odd and proper names, and demands of Open what a verb relies on:
// every file of a partition or beside them comes once, in dump order; the logs with an offset are the segments, linked
// in order.
func TestEveryFileIsFoundOnce(t *testing.T) {
	fileName := rapid.OneOf(
		rapid.StringMatching(`[0-9]{1,20}\.(log|index|timeindex|txnindex|snapshot)(\.(deleted|swap|cleaned))?`),
		rapid.StringMatching(`[0-9]{20}-[0-9]{10}\.checkpoint`),
		rapid.SampledFrom([]string{"leader-epoch-checkpoint", "partition.metadata", "quorum-state", "x.log", "notes",
			".hidden"}))
	dirName := rapid.StringMatching(`[a-c._-]{1,3}-[0-9]{1,3}(\.[0-9a-f]{4}-(delete|future|stray))?`)
	root := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(root, "logs")
		must(t, err)
		want := []string{"meta.properties"}
		for name, files := range rapid.MapOfN(dirName, rapid.SliceOfNDistinct(fileName, 0, 12, rapid.ID), 0, 4).Draw(rt,
			"tree") {
			must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
			for _, file := range files {
				want = append(want, filepath.Join(name, file))
			}
		}
		for _, rel := range want {
			must(t, os.WriteFile(filepath.Join(dir, rel), nil, 0o600))
		}
		set, err := Open([]string{dir}, Options{})
		if err != nil || len(set.Problems) > 0 {
			rt.Fatal(err, set.Problems)
		}
		got := rels(set.Files())
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			rt.Fatalf("found %q, want %q", got, want)
		}
		for _, p := range set.Partitions() {
			checkPartition(rt, p)
		}
	})
}

// checkPartition holds a partition's parts against each other.
func checkPartition(t *rapid.T, p *Partition) {
	if !slices.IsSortedFunc(p.Files, func(a, b *File) int { return a.Name.Compare(b.Name) }) {
		t.Fatalf("%s: not in dump order: %q", p.Name, rels(p.Files))
	}
	logs := 0
	for _, f := range p.Files {
		if f.Name.Of(format.KindLog) {
			logs++
		}
		for _, kind := range []format.Kind{format.KindLog, format.KindOffsetIndex, format.KindPartitionMetadata} {
			if s := f.Sibling(kind); s != nil && (s.Kind() != kind || filepath.Dir(s.Path) != p.Path) {
				t.Fatalf("the %s of %s is %s", kind, f.Rel, s.Rel)
			}
		}
	}
	if len(p.Segments) != logs {
		t.Fatalf("%s: %d segments of %d logs", p.Name, len(p.Segments), logs)
	}
	for i, s := range p.Segments {
		last := i == len(p.Segments)-1
		if (s.Next == nil) != last || !last && (s.Next.Prev != s || s.Next.Base < s.Base) {
			t.Fatalf("%s: segment %d is not linked in order", p.Name, s.Base)
		}
	}
}
