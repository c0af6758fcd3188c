package logdir

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestShards: for any number of shards each partition is in exactly one, the state files are in the first, and no shard
// has more than Graham's bound.
func TestShards(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp(t.TempDir(), "shard")
		if err != nil {
			rt.Fatal(err)
		}
		sizes := map[string]int64{}
		for i := range rapid.IntRange(1, 30).Draw(rt, "partitions") {
			name := fmt.Sprintf("t%d-%d", i%3, i)
			sizes[name] = rapid.SampledFrom([]int64{0, 1, 79, 5000, 5000, 70_000, 1 << 20}).Draw(rt, name)
			log := filepath.Join(root, name, "00000000000000000000.log")
			if os.Mkdir(filepath.Dir(log), 0o755) != nil || os.WriteFile(log, nil, 0o644) != nil ||
				os.Truncate(log, sizes[name]) != nil {
				rt.Fatal("the directory could not be written")
			}
		}
		if err := os.WriteFile(filepath.Join(root, "meta.properties"), []byte("version=1\n"), 0o644); err != nil {
			rt.Fatal(err)
		}
		n := rapid.IntRange(1, 8).Draw(rt, "shards")
		seen := map[string]int{}
		var total, largest int64
		for i := 1; i <= n; i++ {
			set, err := Open([]string{root}, Options{})
			if err != nil {
				rt.Fatal(err)
			}
			set.Shard(i, n)
			isMeta := func(f *File) bool { return f.Name.Raw == "meta.properties" }
			if has := slices.ContainsFunc(set.Files(), isMeta); has != (i == 1) {
				rt.Errorf("shard %d of %d: meta.properties %v", i, n, has)
			}
			var bytes int64
			for _, p := range set.Partitions() {
				seen[p.Name]++
				bytes += sizes[p.Name]
			}
			total, largest = total+bytes, max(largest, bytes)
		}
		for name := range sizes {
			if seen[name] != 1 {
				rt.Errorf("%s is in %d of %d shards", name, seen[name], n)
			}
		}
		best := max(slices.Max(slices.Collect(maps.Values(sizes))), (total+int64(n)-1)/int64(n))
		if bound := best*2 + int64(len(sizes)); largest > bound {
			rt.Errorf("a shard of %d bytes, where %d would do", largest, best)
		}
	})
}

// TestSample: at least the part asked for, the same for the same seed, another for another.
func TestSample(t *testing.T) {
	root := t.TempDir()
	for i := range 40 {
		log := filepath.Join(root, fmt.Sprintf("t-%d", i), "00000000000000000000.log")
		if os.Mkdir(filepath.Dir(log), 0o755) != nil || os.WriteFile(log, make([]byte, 100), 0o644) != nil {
			t.Fatal("the directory could not be written")
		}
	}
	sample := func(fraction float64, seed int64) string {
		set, err := Open([]string{root}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		left, all := set.Sample(fraction, seed)
		if want := int(fraction * 40); all != 40 || left != max(want, 1) || len(set.Partitions()) != left {
			t.Errorf("%v: %d of %d partitions", fraction, left, all)
		}
		var names []string
		for _, p := range set.Partitions() {
			names = append(names, p.Name)
		}
		return fmt.Sprint(names)
	}
	if a, b, c := sample(0.25, 1), sample(0.25, 1), sample(0.25, 2); a != b || a == c {
		t.Errorf("%s\n%s\n%s", a, b, c)
	}
	sample(0.001, 1)
	sample(1, 1)
}
