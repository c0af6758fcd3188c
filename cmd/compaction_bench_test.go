package cmd

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kseg/format"
	"kseg/internal/fixture"
)

// BenchmarkCompactionBesideVerify takes the time of compaction as a multiple of that of verify for the same bytes.
func BenchmarkCompactionBesideVerify(b *testing.B) {
	for _, codec := range []format.Codec{format.CodecNone, format.CodecLZ4, format.CodecZstd} {
		for _, jobs := range []string{"1", "2"} {
			b.Run(fmt.Sprintf("%s/jobs=%s", codec, jobs), func(b *testing.B) {
				dir := filepath.Join(b.TempDir(), "bench-0")
				if err := os.MkdirAll(dir, 0o755); err != nil {
					b.Fatal(err)
				}
				fixture.WriteBenchLog(b, dir, 64<<20, codec)
				took := map[string]time.Duration{}
				for b.Loop() {
					for _, verb := range []string{"verify", "compaction"} {
						start := time.Now()
						args := []string{verb, "--jobs", jobs, dir}
						if code := Main(args, strings.NewReader(""), io.Discard, io.Discard); code != 0 {
							b.Fatalf("%s: exit code %d", verb, code)
						}
						took[verb] += time.Since(start)
					}
				}
				// The active segment, a quarter, is not cleaned.
				b.ReportMetric(took["compaction"].Seconds()/took["verify"].Seconds()*4/3, "x-verify")
			})
		}
	}
}
