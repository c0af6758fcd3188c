package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (b *bench) head() error {
	commit, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("git: %w", err)
	}
	java := "not run"
	if b.lib != "" {
		out, err := exec.Command("java", "-version").CombinedOutput()
		if err != nil {
			return fmt.Errorf("java: %w", err)
		}
		jars, _ := filepath.Glob(filepath.Join(b.lib, "kafka-clients-*.jar"))
		java = fmt.Sprintf("%s, %s", strings.TrimSuffix(filepath.Base(slices.Concat(jars, []string{"?"})[0]), ".jar"),
			strings.SplitN(string(out), "\n", 2)[0])
	}
	cpu, cores := machine()
	fmt.Fprintf(&b.page, `# Performance

Written by `+"`make bench`"+`; absolute times are of one machine, ratios hold better. All files are in the page cache,
so that it is the program that is timed and not the disk; the best of %d runs counts. Start-up is in all
times of kseg (some milliseconds), and that of Java in those of kafka-dump-log (about half a second), as a
user waits for both.

| | |
|---|---|
| date, commit | %s, %s |
| processor | %s, %d cores |
| system | %s/%s, %s |
| load | %s |
| Kafka | %s |

`, b.runs, time.Now().UTC().Format(time.DateOnly), strings.TrimSpace(string(commit)), cpu, cores,
		runtime.GOOS, runtime.GOARCH, runtime.Version(), load(), java)
	return nil
}

// load is how many programs were at work, as the system tells it: a quiet machine has less than one.
func load() string {
	average, _ := os.ReadFile("/proc/loadavg")
	if one, _, ok := strings.Cut(string(average), " "); ok {
		return one + " before it began"
	}
	return "not known"
}

// machine is the processor, as the system names it.
func machine() (cpu string, cores int) {
	info, _ := os.ReadFile("/proc/cpuinfo")
	if m := regexp.MustCompile(`model name\s*: (.*)`).FindSubmatch(info); m != nil {
		return string(m[1]), runtime.NumCPU()
	}
	return runtime.GOARCH, runtime.NumCPU()
}

// work is a command line to time, and what does the same in Kafka, nil if nothing does.
type work struct {
	ours []string // OUT stands for a folder that is not there
	name string   // of what Kafka has
	real func(lib, segment string, runs int) (time.Duration, error)
}

var works = []work{
	{[]string{"dump"}, "kafka-dump-log", dumpLog()},
	{[]string{"dump", "--records"}, "kafka-dump-log --print-data-log", dumpLog("--print-data-log")},
	{[]string{"verify", "--level", "crc"}, "", nil},
	{[]string{"verify"}, "", nil},
	{[]string{"verify", "--rebuild", "OUT"}, "LogSegment.recover", recovery},
}

// dumpLog times the real kafka-dump-log with these flags.
func dumpLog(flags ...string) func(lib, segment string, runs int) (time.Duration, error) {
	return func(lib, segment string, runs int) (time.Duration, error) {
		args := []string{"-Xmx2g", "-cp", filepath.Join(lib, "*"), "org.apache.kafka.tools.DumpLogSegments", "--files",
			segment}
		return best(runs, func() error { return command("java", append(args, flags...)...) })
	}
}

// recovery times LogSegment.recover on a copy of the segment's folder; the start of Java does not count.
func recovery(lib, segment string, runs int) (time.Duration, error) {
	shortest := time.Duration(1<<63 - 1)
	for range runs {
		out, err := exec.Command("java", "-Xmx2g", "-cp", filepath.Join(lib, "*"), filepath.Join("rebuild", "oracle",
			"Recovery.java"), "time", "4096", "86400000", filepath.Dir(segment)).Output()
		if err != nil {
			return 0, fmt.Errorf("recovery: %w", err)
		}
		took, err := time.ParseDuration(strings.TrimSpace(string(out)))
		if err != nil {
			return 0, err
		}
		shortest = min(shortest, took)
	}
	return shortest, nil
}

// besideKafka times a segment of each shape beside Kafka's own code and the bare loop.
func (b *bench) besideKafka() error {
	fmt.Fprintf(&b.page, `## Beside Kafka's own code

A segment of %d MiB of each shape. The bare loop hops from header to header and checks the CRC-32C of each
batch, on one core; how long kseg takes is told in multiples of it. Kafka's recovery of the segment
(`+"`LogSegment.recover`"+`) is timed inside of Java, without its start.

| batches | command | time | MiB/s | bare loops | Kafka's | time | kseg is faster by |
|---|---|--:|--:|--:|---|--:|--:|
`, b.mib)
	for _, s := range shapes {
		dir := filepath.Join(b.tmp, s.name)
		if err := writeLog(dir, s.model, 1, b.mib<<20); err != nil {
			return err
		}
		if err := b.timeSegment(s.name, filepath.Join(dir, "00000000000000000000.log")); err != nil {
			return err
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// timeSegment prints a line for each work over one segment.
func (b *bench) timeSegment(shape, segment string) error {
	data, err := os.ReadFile(segment)
	if err != nil {
		return err
	}
	bare, err := best(b.runs, func() error { return bareLoop(data) })
	if err != nil {
		return err
	}
	for _, w := range works {
		ours, err := b.time(append(slices.Clone(w.ours), segment))
		if err != nil {
			return err
		}
		took, ratio := "", ""
		if b.lib != "" && w.real != nil {
			t, err := w.real(b.lib, segment, b.runs)
			if err != nil {
				return err
			}
			took, ratio = shown(t), fmt.Sprintf("%.1f", t.Seconds()/ours.Seconds())
		}
		fmt.Fprintf(&b.page, "| %s | `%s` | %s | %.0f | %.1f | %s | %s | %s |\n", shape, strings.Join(w.ours, " "),
			shown(ours), float64(len(data))/(1<<20)/ours.Seconds(), ours.Seconds()/bare.Seconds(), w.name, took, ratio)
	}
	return nil
}

// time is how long kseg takes; OUT stands for a folder that is not there.
func (b *bench) time(args []string) (time.Duration, error) {
	args, out := slices.Clone(args), filepath.Join(b.tmp, "out")
	for i := range args {
		if args[i] == "OUT" {
			args[i] = out
		}
	}
	c, err := b.cheapest(args, out)
	return c.wall, err
}

func shown(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + "s"
}
