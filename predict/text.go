package predict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kseg/broker"
	"kseg/format"
	"kseg/logdir"
	"kseg/render"
)

// Style is how the text looks.
type Style struct {
	Theme    render.Theme
	Width    int
	AllFiles bool
	Quiet    bool // only what is wrong
}

// AppendText appends the answer: does the broker start, what each partition that is not left alone loses, and what it
// costs.
func (b *Broker) AppendText(dst []byte, o *Options, st Style) []byte {
	dst = b.appendVerdict(dst, st)
	quiet, unserved := 0, int64(0)
	for _, p := range b.Partitions {
		switch {
		case p.Loaded == nil:
		case p.Unserved && p.Harmless() && !st.AllFiles:
			unserved++
		case !p.Harmless() || st.AllFiles:
			dst = b.appendPartition(dst, p, st)
		default:
			quiet++
		}
	}
	if unserved > 0 {
		dst = append(dst, '\n')
		dst = render.AppendParagraph(dst, render.Plural(unserved, "partition is", "partitions are")+
			" not served.", st.Width)
	}
	if st.Quiet {
		return dst
	}
	if quiet > 0 && len(b.Partitions) > 1 {
		dst = append(dst, '\n')
		dst = render.AppendParagraph(dst, b.rest(quiet), st.Width)
	} else if quiet > 0 {
		for _, p := range b.Partitions {
			dst = b.appendPartition(dst, p, st)
		}
	}
	return b.appendCosts(dst, o, st)
}

// appendVerdict says whether the broker starts, and what of it goes offline.
func (b *Broker) appendVerdict(dst []byte, st Style) []byte {
	if !b.listed && (len(b.Stops) == 0 || len(b.Dirs) == 0) {
		return dst
	}
	var names []string
	for _, d := range b.Dirs {
		name := render.Escaped(d.Dir.Display)
		if !d.MetadataOnly() {
			name += " (" + stopped(d.Clean) + ")"
		}
		names = append(names, name)
	}
	head := strings.Join(names, ", ")
	switch {
	case len(b.Stops) > 0:
		head += ": " + st.Theme.Bad("the broker does not start")
	case !st.Quiet:
		head += ": " + st.Theme.Good("nothing keeps the broker from starting")
	default:
		head = ""
	}
	if head != "" {
		dst = render.AppendParagraph(dst, strings.TrimPrefix(head, ": "), st.Width)
	}
	for _, r := range b.Stops {
		dst = appendItem(dst, reason(r), st.Width)
	}
	for _, d := range b.Dirs {
		for _, r := range d.Offline {
			dst = appendItem(dst, d.Dir.Display+" goes offline: "+reason(r), st.Width)
		}
		for _, r := range d.Refused {
			dst = appendItem(dst, "no partition in "+d.Dir.Display+" is served: "+reason(r), st.Width)
		}
	}
	for _, r := range b.Offline {
		dst = appendItem(dst, reason(r), st.Width)
	}
	if n := len(b.Vanished); n > 0 {
		text := fmt.Sprintf("%s with what is cut from the metadata log: %s", render.Plural(int64(n), "topic vanishes",
			"topics vanish"), listed(b.Vanished))
		if b.Voters > 1 {
			text += fmt.Sprintf("; there are %d controllers, and what the others still have is fetched from them", b.Voters)
		}
		dst = appendItem(dst, text, st.Width)
	}
	for _, text := range absent(b.Absent) {
		dst = appendItem(dst, text, st.Width)
	}
	if b.Forgotten {
		dst = appendItem(dst, "the metadata log is gone: the broker, its cluster's only controller, begins a new one that "+
			"knows no topic", st.Width)
	}
	if b.Unplaced != "" {
		dst = appendItem(dst, b.Unplaced, st.Width)
	}
	for _, text := range b.Notes {
		dst = appendItem(dst, text, st.Width)
	}
	return dst
}

// fates are what becomes of partitions without a directory.
var fates = map[broker.Fate]string{
	broker.Emptied:   "start over, empty",
	broker.Elsewhere: "start over, empty, in another log directory",
	broker.Uncopied:  "start over, empty, unless this is a copy of only some partitions",
	broker.NotMade:   "are not made while a log directory is offline, which may have them",
	broker.Refetched: "come again from their leaders, other brokers",
	broker.New:       "are new: no checkpoint lists them yet",
}

// absent says what becomes of partitions without a directory, those of one fate together.
func absent(all []broker.Absent) []string {
	names := map[broker.Fate][]string{}
	for _, a := range all {
		names[a.Fate] = append(names[a.Fate], a.Name())
	}
	var texts []string
	for _, fate := range slices.Sorted(maps.Keys(names)) {
		where := "no directory, though the metadata place them here; they"
		if fate == broker.Elsewhere {
			where = "in a log directory that is offline; they"
		}
		texts = append(texts, fmt.Sprintf("%s %s: %s", where, fates[fate], listed(names[fate])))
	}
	return texts
}

func stopped(clean bool) string {
	if clean {
		return "stopped cleanly"
	}
	return "not stopped cleanly"
}

// maxNames is how many names a sentence lists.
const maxNames = 8

func listed(names []string) string {
	if n := len(names); n > maxNames {
		return strings.Join(names[:maxNames], ", ") + fmt.Sprintf(" and %d more", n-maxNames)
	}
	return strings.Join(names, ", ")
}

// appendItem appends a sentence below a head.
func appendItem(dst []byte, text string, width int) []byte {
	for _, line := range render.Wrap(render.Escaped(text), max(20, width-2)) {
		dst = append(dst, "  "...)
		dst = append(dst, line...)
		dst = append(dst, '\n')
	}
	return dst
}

// loaded is what can be said of partitions to which nothing happens.
func (b *Broker) loaded() string {
	if b.Unplaced != "" {
		return " loaded, and nothing is cut"
	}
	return " loaded without loss"
}

// rest says of how many partitions there is nothing to tell, and how many of those are read.
func (b *Broker) rest(n int) string {
	text := render.Plural(int64(n), "partition is", "partitions are") + b.loaded()
	if n < len(b.Partitions) {
		text = "The other " + text
	}
	read := int64(0)
	for _, p := range b.Partitions {
		if p.Loaded != nil && !p.Unserved && p.Harmless() && recovered(p) > 0 {
			read++
		}
	}
	if read > 0 {
		text += fmt.Sprintf("; segments of %s are recovered", render.Count(read)+" of them")
	}
	return text + "."
}

func (b *Broker) appendPartition(dst []byte, p *broker.PartitionStart, st Style) []byte {
	if len(dst) > 0 {
		dst = append(dst, '\n')
	}
	dst = append(dst, render.Escaped(p.Partition.Display)...)
	dst = append(dst, ": "...)
	text, bad := outcome(p)
	if bad {
		dst = append(dst, st.Theme.Bad(render.Escaped(text))...)
	} else {
		dst = append(dst, render.Escaped(text)...)
	}
	dst = append(dst, '\n')
	for _, line := range why(p) {
		dst = appendItem(dst, line, st.Width)
	}
	return appendFiles(dst, p, st)
}

// outcome is the answer for one partition.
func outcome(p *broker.PartitionStart) (text string, bad bool) {
	switch {
	case p.Failure != nil && p.Failure.Offline:
		return "it is not loaded, and its log directory goes offline", true
	case p.Failure != nil:
		return "it is not loaded, and the broker does not start", true
	case p.Stray != "":
		return "it is set aside as -stray, where nobody reads it", p.Hidden()
	case len(p.Lost.Ranges) > 0:
		return fmt.Sprintf("%s, %s, are lost forever; the log then runs from %d to %d",
			render.Plural(p.Lost.Offsets(), "offset", "offsets"), ranges(p.Lost.Ranges), p.Loaded.LogStart, p.LogEnd), true
	case len(p.Hazards) > 0:
		return fmt.Sprintf("it is loaded, from %d to %d, and then retention deletes %s", p.Loaded.LogStart, p.LogEnd,
			render.Plural(int64(len(p.Hazards)), "segment", "segments")), true
	}
	return fmt.Sprintf("nothing is lost; the log then runs from %d to %d", p.Loaded.LogStart, p.LogEnd), false
}

// ranges lists ranges of offsets; those that follow on each other are one.
func ranges(lost []broker.LostRange) string {
	var joined []broker.LostRange
	for _, r := range lost {
		if n := len(joined); n > 0 && joined[n-1].Last+1 >= r.First {
			joined[n-1].Last = max(joined[n-1].Last, r.Last)
		} else {
			joined = append(joined, r)
		}
	}
	lost = joined
	var texts []string
	for i, r := range lost {
		if i == maxNames {
			texts = append(texts, fmt.Sprintf("and %d more ranges", len(lost)-i))
			break
		}
		texts = append(texts, fmt.Sprintf("%d–%d", r.First, r.Last))
	}
	return strings.Join(texts, ", ")
}

// why are the clauses that explain the outcome.
func why(p *broker.PartitionStart) []string {
	var lines []string
	if p.Failure != nil {
		lines = append(lines, p.Failure.Error())
	}
	if p.Stray != "" {
		lines = append(lines, p.Stray)
	}
	if p.Replaced != nil {
		lines = append(lines, p.Replaced.Partition.Display+", the copy in the log directory to which the partition was "+
			"moved, takes its place, and this one is deleted")
	}
	for _, c := range p.Cuts {
		text := "the file ends in part of a batch"
		if c.Why != nil {
			text = c.Why.Error()
		}
		lines = append(lines, fmt.Sprintf("%s is cut at byte %d: %s", c.File, c.At, text))
	}
	if n := removedLogs(p); n > 0 {
		lines = append(lines, fmt.Sprintf("%s removed, intact or not", render.Plural(n, "segment is", "segments are")))
	}
	if n := recovered(p); n > 0 && p.Failure == nil {
		lines = append(lines, recoveredWhy(p, n))
	}
	for _, h := range p.Hazards {
		lines = append(lines, h.Text)
	}
	return lines
}

func recoveredWhy(p *broker.PartitionStart, n int64) string {
	text := render.Plural(n, "segment is", "segments are") + " read and reindexed"
	switch {
	case p.Partition.IsClusterMetadata():
		return text + ", as the metadata log is at every start"
	case p.Clean:
		return text + ", for want of a usable index"
	}
	return text + fmt.Sprintf(", from the recovery point %d on", p.RecoveryPoint)
}

// removedLogs counts segments that are removed, leftovers aside.
func removedLogs(p *broker.PartitionStart) int64 {
	n := int64(0)
	for _, f := range p.Files {
		if name := format.ParseFileName(f.Name); f.Action == broker.Delete && name.Kind == format.KindLog &&
			!name.Leftover() {
			n++
		}
	}
	return n
}

// appendFiles lists the files that change, or all.
func appendFiles(dst []byte, p *broker.PartitionStart, st Style) []byte {
	columns := render.NewColumns("nrrw").Fit(st.Theme, render.Below)
	for _, f := range p.Files {
		if (st.AllFiles || f.Action != broker.Keep) && !(f.Action == broker.Create && strings.HasSuffix(f.Name,
			".deleted")) {
			columns.Row(render.Escaped(f.Name), number(f.Before), number(f.After), action(&f, st.Theme))
		}
	}
	if columns.Len() == 0 {
		return dst
	}
	return columns.Append(dst, "  ")
}

func number(n *int64) string {
	if n == nil {
		return "-"
	}
	return render.Count(*n)
}

func action(f *broker.FileChange, theme render.Theme) string {
	text := string(f.Action)
	switch {
	case f.Action == broker.Keep && *f.After > *f.Before:
		return "keep, and make room"
	case f.Action == broker.Delete && f.RenamedTo != "":
		return theme.Bad("delete") + " (.deleted at first, deleted a minute later)"
	case f.Action == broker.Rename:
		return "rename to " + render.Escaped(f.RenamedTo)
	case f.Action == broker.Delete || f.Action == broker.Truncate:
		return theme.Bad(text)
	}
	return text
}

// lowSpace is about what a start of a small broker writes before it serves anything.
const lowSpace = 64 << 20

// appendCosts says what is read, how long that takes, and how much room there is.
func (b *Broker) appendCosts(dst []byte, o *Options, st Style) []byte {
	var parts []string
	if n := b.BytesRead(); n > 0 {
		text := "The start reads " + render.Bytes(n)
		if o.Rate > 0 {
			text += fmt.Sprintf(", %s at %s/s with %s a log directory", render.Duration(int64(1000*b.Seconds(o))),
				render.Bytes(o.Rate), render.Plural(int64(o.Threads), "recovery thread", "recovery threads"))
		}
		parts = append(parts, text+".")
	}
	told := map[logdir.FileSystem]bool{}
	for i, d := range b.Dirs {
		if s := b.Space[i]; s != nil && d.Dir.Listed && !told[*s] {
			told[*s] = true
			text := fmt.Sprintf("The file system of %s has %s free of %s", d.Dir.Display, render.Bytes(s.Free),
				render.Bytes(s.Size))
			if s.Free < lowSpace {
				text += ": too little to start on; recovery that cannot write its indexes and snapshots may empty sound " +
					"segments, so make room first"
			}
			parts = append(parts, text+".")
		}
	}
	if len(parts) == 0 {
		return dst
	}
	dst = append(dst, '\n')
	return render.AppendParagraph(dst, render.Escaped(strings.Join(parts, " ")), st.Width)
}

// Summary is the one line for stderr.
func Summary(all []*Broker) string {
	var partitions, lose, fail, unserved, stray, expire, absent, stops int64
	said := " loaded without loss"
	for _, b := range all {
		if len(b.Stops) > 0 {
			stops++
		}
		if b.Unplaced != "" {
			said = " loaded, and nothing is cut; whether they keep their place is not known"
		}
		for _, a := range b.Absent {
			if a.Fate <= broker.Uncopied {
				absent++
			}
		}
		for _, p := range b.Partitions {
			partitions++
			switch {
			case p.Loaded == nil:
			case p.Failure != nil:
				fail++
			case p.Unserved:
				unserved++
			case p.Hidden():
				stray++
			case len(p.Lost.Ranges) > 0:
				lose++
			case len(p.Hazards) > 0:
				expire++
			}
		}
	}
	parts := []string{render.Plural(partitions, "partition", "partitions")}
	for _, part := range []struct {
		n    int64
		text string
	}{{lose, "losing records"}, {fail, "not loaded"}, {unserved, "not served"}, {stray, "set aside"},
		{expire, "about to be deleted"}, {absent, "without a directory"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", render.Count(part.n), part.text))
		}
	}
	if len(parts) == 1 {
		parts = append(parts, "all are"+said)
	}
	if stops > 0 {
		parts = slices.Insert(parts, 0, "the broker does not start")
	}
	return strings.Join(parts, ", ")
}
