package ls

import (
	"cmp"
	"fmt"
	"slices"

	"kseg/logdir"
	"kseg/render"
)

// Summary is what all partitions of the operands amount to, with what the list itself does not show.
type Summary struct {
	Total       Sums
	Dirs        []*Dir
	Twins       Twins
	MaxMapCount int64

	batching  []string   // sentences about topics whose producers hardly batch
	leftovers []Leftover // the largest
	left      int64
	leftBytes int64
}

// maxLeftovers is how many leftovers text shows one by one.
const maxLeftovers = 20

// NewSummary begins with the log directories.
func NewSummary(dirs []*Dir, maxMapCount int64, node func(dir *logdir.LogDir) Maybe) *Summary {
	s := &Summary{Dirs: dirs, MaxMapCount: maxMapCount, Twins: Twins{Node: node}}
	for _, d := range dirs {
		s.Total.Add(&d.Sums)
		for _, l := range d.Leftovers {
			s.leftover(l)
		}
	}
	return s
}

// Add takes a partition; from is the directory that was listed for it.
func (s *Summary) Add(p *Partition, from *logdir.Partition) {
	if p.Gone {
		return
	}
	s.Twins.Add(from)
	s.Total.Add(&p.Sums)
	for _, d := range s.Dirs {
		if d.LogDir == from.Parent {
			d.Sums.Add(&p.Sums)
		}
	}
	if l, ok := p.Leftover(); ok {
		s.leftover(l)
	}
	for _, l := range p.Leftovers {
		s.leftover(l)
	}
}

func (s *Summary) leftover(l Leftover) {
	s.left++
	s.leftBytes += l.Usage.Bytes
	s.leftovers = append(s.leftovers, l)
	if len(s.leftovers) >= 2*maxLeftovers {
		s.largest()
	}
}

// largest keeps the leftovers that text shows.
func (s *Summary) largest() {
	slices.SortStableFunc(s.leftovers, func(a, b Leftover) int { return cmp.Compare(b.Usage.Bytes, a.Usage.Bytes) })
	s.leftovers = s.leftovers[:min(len(s.leftovers), maxLeftovers)]
}

// maxBatching is of how many topics text says that their producers hardly batch.
const maxBatching = 5

// Topic takes a topic that is complete.
func (s *Summary) Topic(t *Topic) {
	if sentence := t.Batching(); sentence != "" && len(s.batching) < maxBatching {
		s.batching = append(s.batching, sentence)
	}
}

// AppendText appends what stands under the list.
func (s *Summary) AppendText(dst []byte, st Style) []byte {
	dst = s.appendLeftovers(dst, st)
	dst = s.appendDirs(dst, st)
	return AppendSentences(dst, s.sentences(st), st)
}

// Batching are sentences about topics whose producers hardly batch.
func (s *Summary) Batching() []string { return s.batching }

// AppendSentences appends sentences, each on lines of its own.
func AppendSentences(dst []byte, sentences []string, st Style) []byte {
	for _, sentence := range sentences {
		for _, line := range render.Wrap(sentence, st.Width) {
			dst = append(append(dst, line...), '\n')
		}
	}
	return dst
}

func (s *Summary) appendLeftovers(dst []byte, st Style) []byte {
	if s.left == 0 {
		return dst
	}
	s.largest()
	dst = append(dst, '\n')
	dst = append(dst, st.Theme.Strong("left over")...)
	dst = append(dst, fmt.Sprintf(": %s, %s\n", render.Plural(s.left, "file or directory", "files and directories"),
		render.Bytes(s.leftBytes))...)
	var told []string
	for _, first := range s.leftovers {
		sentence := first.What + "; " + first.Removal + ":"
		if slices.Contains(told, sentence) {
			continue
		}
		told = append(told, sentence)
		for _, line := range render.Wrap(sentence, st.Width-2) {
			dst = append(append(append(dst, "  "...), line...), '\n')
		}
		columns := render.NewColumns("rn").Fit(st.Theme)
		for _, l := range s.leftovers {
			if l.What == first.What && l.Removal == first.Removal {
				columns.Row(render.Bytes(l.Usage.Bytes), render.Escaped(l.Display))
			}
		}
		dst = columns.Append(dst, "    ")
	}
	if more := s.left - int64(len(s.leftovers)); more > 0 {
		dst = append(dst, fmt.Sprintf("  and %s more, smaller ones; -o json lists all\n", render.Count(more))...)
	}
	return dst
}

func (s *Summary) appendDirs(dst []byte, st Style) []byte {
	if len(s.Dirs) == 0 {
		return dst
	}
	dst = append(dst, '\n')
	columns := render.NewColumns("nrrrrwl").Fit(st.Theme, 6, 2, 1)
	columns.Head(strongAll(st, "log directory", "partitions", "segments", "size", "on disk", "free", "inodes free")...)
	for _, d := range s.Dirs {
		free, inodes := "", ""
		if d.RoomKnown {
			free = fmt.Sprintf("%s of %s (%s)", render.Bytes(d.Room.Free), render.Bytes(d.Room.Size),
				percent(d.Room.Free, d.Room.Size))
			if d.Room.Files > 0 {
				inodes = percent(d.Room.FreeFiles, d.Room.Files)
			}
			if d.Room.ReadOnly {
				free += ", mounted read-only"
			}
		}
		columns.Row(render.Escaped(d.Display), render.Count(d.Sums.Partitions), render.Count(d.Sums.Segments),
			render.Bytes(d.Usage.Bytes), render.Bytes(d.Usage.Allocated), free, inodes)
	}
	return columns.Append(dst, "")
}

func strongAll(st Style, names ...string) []string {
	cells := make([]string, len(names))
	for i, n := range names {
		cells[i] = st.Theme.Strong(n)
	}
	return cells
}

func percent(part, whole int64) string {
	if whole <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

// sentences are what is to be said of the whole.
func (s *Summary) sentences(st Style) []string {
	t := &s.Total
	list := []string{fmt.Sprintf("Total: %s, %s, %s bytes as du -b counts them, %s on disk (du).",
		render.Plural(t.Partitions, "partition", "partitions"),
		render.Plural(t.Segments, "segment", "segments"), render.Count(t.Usage.Bytes), render.Count(t.Usage.Allocated))}
	for _, twin := range s.Twins.List() {
		list = append(list, st.Theme.Bad(render.Escaped(twin.Sentence()))+".")
	}
	if t.Linked.Bytes > 0 {
		list = append(list, fmt.Sprintf("Links lead to %s more (%s on disk), which du counts with -L only.",
			render.Bytes(t.Linked.Bytes), render.Bytes(t.Linked.Allocated)))
	}
	if t.Estimated {
		list = append(list, "Records after ≤ are counted by their offsets, from the first to the last: compaction leaves "+
			"fewer. --stats reads all headers.")
	}
	if t.Unread > 0 {
		list = append(list, st.Theme.Look(render.Plural(t.Unread, "directory or log", "directories and logs")+
			" could not be read; what is in them is not in these numbers."))
	}
	if t.Maps > 0 {
		maps := fmt.Sprintf("A broker maps 2 files a segment: %s maps here, of vm.max_map_count %d (%s).",
			render.Count(t.Maps), s.MaxMapCount, percent(t.Maps, s.MaxMapCount))
		if t.Maps > s.MaxMapCount {
			maps = st.Theme.Bad(maps)
		}
		list = append(list, maps)
	}
	if t.ClosedBytes > 0 {
		list = append(list, fmt.Sprintf("Retention can free at most what closed segments have, %s; kseg retention says "+
			"which are deleted, and when.", render.Bytes(t.ClosedBytes)))
	}
	return list
}

// EvidenceSentence says which segment of a partition is active, and how that is known.
func (p *Partition) EvidenceSentence() string {
	if !p.Active.OK {
		return ""
	}
	how := "nothing tells whether a broker has it open"
	switch p.Evidence {
	case Preallocated:
		how = "its indexes are preallocated, so a broker has it open, or was stopped without closing it"
	case CleanMarker:
		how = "the log directory was shut down cleanly"
	}
	return fmt.Sprintf("* The active segment is %d, the last by its base offset; %s.", p.Active.N, how)
}
