package ls

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// BenchmarkList lists a log directory of 2,000 small partitions, beside du and find over the same directory.
func BenchmarkList(b *testing.B) {
	dir := b.TempDir()
	log := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{TimestampMs: 1700000000000,
		Value: []byte("x")}}})
	put := func(name string, data []byte, size int64) {
		err := os.WriteFile(name, data, 0o600)
		if err == nil && size > 0 {
			err = os.Truncate(name, size)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	put(filepath.Join(dir, "meta.properties"), []byte("version=1\n"), 0)
	for i := range 2000 {
		p := filepath.Join(dir, fmt.Sprintf("topic-%d-%d", i/50, i%50))
		if err := os.Mkdir(p, 0o755); err != nil {
			b.Fatal(err)
		}
		put(filepath.Join(p, format.SegmentFileName(0, format.KindLog)), log, 0)
		put(filepath.Join(p, format.SegmentFileName(0, format.KindOffsetIndex)), nil, 10485760)
		put(filepath.Join(p, format.SegmentFileName(0, format.KindTimeIndex)), nil, 10485756)
		put(filepath.Join(p, "leader-epoch-checkpoint"), []byte("0\n0\n"), 0)
	}
	b.Run("ls", func(b *testing.B) {
		for b.Loop() {
			if _, s := list(b, dir); s.Total.Records != 2000 {
				b.Fatal(s.Total.Records)
			}
		}
	})
	for name, args := range map[string][]string{"du": {"-a", dir}, "find": {dir, "-printf", "%s\n"}} {
		b.Run(name, func(b *testing.B) {
			if _, err := exec.LookPath(name); err != nil {
				b.Skip(err)
			}
			for b.Loop() {
				if err := exec.Command(name, args...).Run(); err != nil {
					b.Skip(err)
				}
			}
		})
	}
}
