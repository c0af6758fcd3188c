package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// verbWorks are the command lines that are timed over a log directory; DIR stands for it, PARTITION for its one
// partition, END for its last offset.
var verbWorks = []string{
	"ls DIR", "ls --stats DIR", "dump PARTITION", "dump --records PARTITION", "dump --records --key k-17 PARTITION",
	"verify --level crc DIR", "verify DIR", "lookup PARTITION --offset END", "lookup PARTITION --timestamp -1d",
	"lookup PARTITION --sweep", "density PARTITION --interval 1,4KiB,1MiB", "retention DIR", "txn DIR",
	"compaction PARTITION", "compare PARTITION COPY", "predict DIR", "predict --shutdown unclean DIR",
	"salvage PARTITION -o OUT",
	"explain PARTITION/00000000000000000000.log",
}

// grown are those that are timed over logs of rising sizes.
var grown = []string{"ls DIR", "dump PARTITION", "verify DIR", "lookup PARTITION --offset END", "retention DIR",
	"predict DIR"}

// logDir writes a log directory with one partition of so many segments, with the indexes that a broker would have.
func (b *bench) logDir(segments int, bytes int64) (dir string, err error) {
	dir = filepath.Join(b.tmp, "data")
	if err := writeLog(filepath.Join(dir, "orders-0"), shapes[0].model, segments, bytes); err != nil {
		return "", err
	}
	fresh := filepath.Join(b.tmp, "fresh")
	defer os.RemoveAll(fresh)
	if err := command(b.kseg, "verify", "--quiet", "--rebuild", fresh, filepath.Join(dir, "orders-0")); err != nil {
		return "", err
	}
	made, err := filepath.Glob(filepath.Join(fresh, "orders-0", "*"))
	for _, file := range made {
		if err := os.Rename(file, filepath.Join(dir, "orders-0", filepath.Base(file))); err != nil {
			return "", err
		}
	}
	return dir, err
}

// words makes a command line of one of the texts above.
func (b *bench) words(text, dir string) ([]string, error) {
	partition := filepath.Join(dir, "orders-0")
	logs, err := filepath.Glob(filepath.Join(partition, "*.log"))
	if err != nil {
		return nil, err
	}
	var last int64
	if _, err := fmt.Sscanf(filepath.Base(logs[len(logs)-1]), "%d.log", &last); err != nil {
		return nil, err
	}
	return strings.Fields(strings.NewReplacer("DIR", dir, "PARTITION", partition, "END", fmt.Sprint(last+1000),
		"COPY", filepath.Join(b.tmp, "copy", "orders-0")).Replace(text)), nil
}

// verbs times all verbs that read logs over one directory.
func (b *bench) verbs() error {
	dir, err := b.logDir(4, 256<<20)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(filepath.Join(b.tmp, "copy"), os.DirFS(dir)); err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Join(b.tmp, "copy"))
	bare, err := bareLoops(dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(&b.page, `
## Each verb over 1 GiB

One partition of four segments of 256 MiB with batches of 16 KiB, and its indexes. The bare loop over all of it
takes %s. Verbs that jump (lookup, retention, ls, predict after a clean stop) read some pages of it. groups
and metadata read the internal topics, which are small.

| command | time | GiB/s | bare loops |
|---|--:|--:|--:|
`, shown(bare))
	for _, text := range verbWorks {
		args, err := b.words(text, dir)
		if err != nil {
			return err
		}
		took, err := b.time(args)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b.page, "| `%s` | %s | %.1f | %.2f |\n", text, shown(took), 1/took.Seconds(),
			took.Seconds()/bare.Seconds())
	}
	return nil
}

// bareLoops is the time of the bare loop over all logs of a directory.
func bareLoops(dir string) (sum time.Duration, err error) {
	logs, err := filepath.Glob(filepath.Join(dir, "*", "*.log"))
	for _, log := range logs {
		data, err := os.ReadFile(log)
		if err != nil {
			return 0, err
		}
		took, err := best(1, func() error { return bareLoop(data) })
		if err != nil {
			return 0, err
		}
		sum += took
	}
	return sum, err
}

// growth times some verbs over logs of rising sizes, with the memory that they take.
func (b *bench) growth(most int64) error {
	fmt.Fprint(&b.page, `
## From 64 MiB to 4 GiB

One partition, in segments of up to 1 GiB. Beside the time stands the most memory of its own that the process had:
mapped files are not in it, as the kernel takes their pages back when it likes.

`)
	rows := make([]string, len(grown))
	head, line := "| command |", "|---|"
	for mib := int64(64); mib <= most; mib *= 4 {
		head, line = head+fmt.Sprintf(" %d MiB |", mib), line+"--:|"
		dir, err := b.logDir(int(max(1, mib/1024)), min(mib, 1024)<<20)
		if err != nil {
			return err
		}
		for i, text := range grown {
			args, err := b.words(text, dir)
			if err != nil {
				return err
			}
			took, err := b.time(args)
			if err != nil {
				return err
			}
			rows[i] += fmt.Sprintf(" %s, %s |", shown(took), b.memory(args))
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	fmt.Fprintln(&b.page, head+"\n"+line)
	for i, text := range grown {
		fmt.Fprintf(&b.page, "| `%s` |%s\n", text, rows[i])
	}
	return nil
}

// memory runs kseg once more and asks, as long as it runs, how much memory of its own it has.
func (b *bench) memory(args []string) string {
	c := exec.Command(b.kseg, slices.Clone(args)...)
	if err := c.Start(); err != nil {
		return "?"
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	most := int64(0)
	for {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid))
		if _, rest, ok := bytes.Cut(status, []byte("RssAnon:")); ok {
			var kib int64
			if _, err := fmt.Sscan(string(rest), &kib); err == nil {
				most = max(most, kib)
			}
		}
		select {
		case <-done:
			return fmt.Sprintf("%d MiB", (most+1023)/1024)
		case <-time.After(time.Millisecond):
		}
	}
}
