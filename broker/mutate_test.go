//go:build oracle

package broker

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"kseg/format"
)

// mutator damages the files of a directory, at random.
type mutator struct {
	rng *rand.Rand
	dir string
	log []string // what it did
}

func (m *mutator) names() []string {
	entries, _ := os.ReadDir(m.dir)
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// pick is a file, more often a log than another.
func (m *mutator) pick() string {
	names := m.names()
	if len(names) == 0 {
		return ""
	}
	name := names[m.rng.IntN(len(names))]
	for range 2 {
		if format.ParseFileName(name).Kind != format.KindLog && m.rng.IntN(2) == 0 {
			name = names[m.rng.IntN(len(names))]
		}
	}
	return name
}

func (m *mutator) read(name string) []byte {
	raw, _ := os.ReadFile(filepath.Join(m.dir, name))
	return raw
}

func (m *mutator) write(name string, raw []byte) {
	_ = os.WriteFile(filepath.Join(m.dir, name), raw, 0o644)
}

// batches are the positions of the batches of a log, and its end.
func batches(raw []byte) []int64 {
	var at []int64
	pos := int64(0)
	for {
		at = append(at, pos)
		size, err := format.EntrySize(raw, pos)
		if err != nil {
			return at
		}
		pos += size
	}
}

// step does one thing.
func (m *mutator) step() {
	name := m.pick()
	if name == "" {
		return
	}
	raw := m.read(name)
	kind := m.rng.IntN(16)
	m.log = append(m.log, fmt.Sprintf("%d %s", kind, name))
	at := 0
	if len(raw) > 0 {
		at = m.rng.IntN(len(raw))
	}
	switch {
	case kind < 4 && len(raw) > 0: // a bit, in a log rather one of a header
		if format.ParseFileName(name).Kind == format.KindLog {
			starts := batches(raw)
			at = min(len(raw)-1, int(starts[m.rng.IntN(len(starts))])+m.rng.IntN(70))
		}
		raw[at] ^= 1 << m.rng.IntN(8)
		m.write(name, raw)
	case kind == 4:
		m.write(name, raw[:at])
	case kind == 5 && len(raw) > 0: // cut at a batch
		starts := batches(raw)
		m.write(name, raw[:starts[m.rng.IntN(len(starts))]])
	case kind == 6:
		_ = os.Remove(filepath.Join(m.dir, name))
	case kind == 7:
		m.rename(name)
	case kind == 8:
		other := m.pick()
		if format.ParseFileName(other).Kind == format.ParseFileName(name).Kind {
			m.write(name, m.read(other))
			m.write(other, raw)
		}
	case kind == 9:
		m.write(name, append(raw, make([]byte, 1+m.rng.IntN(3000))...))
	case kind == 10:
		garbage := make([]byte, 1+m.rng.IntN(200))
		for i := range garbage {
			garbage[i] = byte(m.rng.IntN(256))
		}
		m.write(name, append(raw, garbage...))
	case kind == 11 && len(raw) > 0: // a batch twice, or elsewhere
		starts := batches(raw)
		if len(starts) > 2 {
			i, j := m.rng.IntN(len(starts)-1), m.rng.IntN(len(starts))
			batch := append([]byte{}, raw[starts[i]:starts[i+1]]...)
			m.write(name, append(append(append([]byte{}, raw[:starts[j]]...), batch...), raw[starts[j]:]...))
		}
	case kind == 12 && len(raw) > 0: // zeros inside, or at the end
		n := min(len(raw)-at, 1+m.rng.IntN(400))
		clear(raw[at : at+n])
		m.write(name, raw)
	case kind == 13 && !strings.HasSuffix(name, ".swap"): // of two files that are renamed to one it is chance which stays
		m.write(name+[]string{".deleted", ".cleaned", ".swap", ".tmp"}[m.rng.IntN(4)], raw)
	case kind == 14:
		m.write("leader-epoch-checkpoint", []byte([]string{"", "0\n0\n", "0\n2\n0 0\n3 50\n", "0\n3\n5 0\n2 40\n7 90\n",
			"0\n1\n0 x\n", "1\n0\n", "0\n9\n0 0\n",
			"0\n2\n0 10\n1 100000\n"}[m.rng.IntN(8)]))
	case kind == 15: // the files of a segment go to a leftover name
		m.leaveSegment(name)
	}
}

func (m *mutator) rename(name string) {
	n := format.ParseFileName(name)
	to := []string{fmt.Sprintf("%020d", n.Base+int64(m.rng.IntN(9))-4), fmt.Sprint(n.Base), "x" + name,
		fmt.Sprintf("%020d", n.Base+100)}[m.rng.IntN(4)]
	_, rest, ok := strings.Cut(name, ".")
	if ok && rest != "snapshot" || strings.HasPrefix(to, "0") { // of two snapshots of one offset it is chance which counts
		_ = os.Rename(filepath.Join(m.dir, name), filepath.Join(m.dir, to+"."+rest))
	}
}

func (m *mutator) leaveSegment(name string) {
	suffix := []string{".deleted", ".cleaned", ".swap"}[m.rng.IntN(3)]
	base := format.ParseFileName(name).Base
	keep := m.rng.IntN(2) == 0
	for _, kind := range []format.Kind{format.KindLog, format.KindOffsetIndex, format.KindTimeIndex, format.KindTxnIndex} {
		file := format.SegmentFileName(base, kind)
		if raw, err := os.ReadFile(filepath.Join(m.dir, file)); err == nil {
			m.write(file+suffix, raw)
			if !keep {
				_ = os.Remove(filepath.Join(m.dir, file))
			}
		}
	}
}
