package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// sizes are how many of each thing there are.
var sizes = []int{5_000, 10_000, 20_000}

const (
	tooMuch  = 2.3                    // times as long for twice as much is named
	telling  = 100 * time.Millisecond // from this time on: below it the start-up hides what grows
	inMemory = "/dev/shm"             // where many small files are written, if there is such a folder
)

// things prints how the time of each verb grows with the number of things of each kind; only those whose name contains
// only.
func (b *bench) things(only string) error {
	fmt.Fprintf(&b.page, `
## From %d to %d of a kind

The processor's time of each verb over a log directory with so many things of one kind, how often the last doubling
contains the one before it, and the most memory in use at the last size. More than %.1f is marked; under %s nothing is
told, as start-up hides what grows. Each thing is small: a partition or a segment holds one batch of one record.

`, sizes[0], sizes[len(sizes)-1], tooMuch, telling)
	for _, kind := range many {
		if !strings.Contains(kind.name, only) {
			continue
		}
		costs := make([][]cost, len(kind.works))
		for _, n := range sizes {
			if err := b.thing(kind.write, n, kind.works, costs); err != nil {
				return fmt.Errorf("%d %s: %w", n, kind.name, err)
			}
		}
		b.thingTable(kind.name, kind.works, costs)
	}
	return nil
}

// thing runs the command lines over n things, and adds what they cost.
func (b *bench) thing(write func(string, int) error, n int, works []string, costs [][]cost) error {
	parent := b.tmp
	if _, err := os.Stat(inMemory); err == nil {
		parent = inMemory
	}
	tmp, err := os.MkdirTemp(parent, "kseg-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "data")
	if err := write(dir, n); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(tmp, "copy"), os.DirFS(dir)); err != nil {
		return err
	}
	names := strings.NewReplacer("DIR", dir, "PARTITION", filepath.Join(dir, "orders-0"), "COPY",
		filepath.Join(tmp, "copy"), "OUT", filepath.Join(tmp, "out"), "SNAPSHOT", fmt.Sprintf("%020d.snapshot", n))
	for i, text := range works {
		c, err := b.cheapest(strings.Fields(names.Replace(text)), filepath.Join(tmp, "out"))
		if err != nil {
			return err
		}
		costs[i] = append(costs[i], c)
	}
	return nil
}

func (b *bench) thingTable(name string, works []string, costs [][]cost) {
	head, line := "| "+name+" |", "|---|"
	for _, n := range sizes {
		head, line = head+fmt.Sprintf(" %d |", n), line+"--:|"
	}
	fmt.Fprintf(&b.page, "%s per doubling | memory |\n%s---|--:|\n", head, line)
	for i, work := range works {
		fmt.Fprintf(&b.page, "| `%s` |", work)
		var ratios []string
		for j, c := range costs[i] {
			fmt.Fprintf(&b.page, " %s |", shown(c.cpu))
			if j == 0 {
				continue
			}
			ratio := c.cpu.Seconds() / costs[i][j-1].cpu.Seconds()
			switch {
			case c.cpu < telling:
				ratios = append(ratios, "-")
			case ratio > tooMuch:
				ratios = append(ratios, fmt.Sprintf("**%.1f**", ratio))
			default:
				ratios = append(ratios, fmt.Sprintf("%.1f", ratio))
			}
		}
		fmt.Fprintf(&b.page, " %s | %d MiB |\n", strings.Join(ratios, ", "), costs[i][len(costs[i])-1].mib)
	}
	fmt.Fprintln(&b.page)
}
