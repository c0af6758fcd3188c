package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kseg/format"
	"kseg/render"
)

// order is how much a result hurts; the worst comes first.
var order = map[Result]int{Diverged: 0, Damaged: 1, OnlyA: 2, OnlyB: 3, Compacted: 4, AAhead: 5, BAhead: 6,
	SameRecords: 7, Identical: 8}

// titles are the results in words.
var titles = map[Result]string{Diverged: "diverged", Damaged: "damaged", OnlyA: "only in a", OnlyB: "only in b",
	Compacted: "compacted",
	AAhead:    "a is ahead", BAhead: "b is ahead", SameRecords: "same records", Identical: "identical"}

// Sort puts the results that hurt most first.
func Sort(all []*Comparison) {
	slices.SortStableFunc(all, func(x, y *Comparison) int { return cmp.Compare(order[x.Result], order[y.Result]) })
}

func (t *Truncation) follower() string {
	if t.FollowerIsA {
		return "a"
	}
	return "b"
}

// paint colours a result.
func (c *Comparison) paint(theme render.Theme, text string) string {
	switch c.Result {
	case Diverged, Damaged, OnlyA, OnlyB:
		return theme.Bad(text)
	case Identical, SameRecords:
		return theme.Good(text)
	}
	return theme.Look(text)
}

// AppendText appends the result in a line, and what it rests on below.
func (c *Comparison) AppendText(dst []byte, theme render.Theme, width int) []byte {
	dst = append(dst, c.paint(theme, fmt.Sprintf("%-12s", titles[c.Result]))...)
	dst = append(dst, "  "+theme.Strong(render.Escaped(c.Name))+"  "...)
	dst = append(dst, c.headline()...)
	dst = append(dst, '\n')
	dst = c.appendLogs(dst, theme)
	for _, sentence := range c.sentences() {
		for _, line := range render.Wrap(render.Escaped(sentence), width-len(indent)) {
			dst = append(dst, indent+line+"\n"...)
		}
	}
	return dst
}

const indent = "              "

// headline says in a clause what the result is about.
func (c *Comparison) headline() string {
	switch c.Result {
	case Diverged:
		return fmt.Sprintf("at offset %d: %s of a and %s of b from there on, %s", c.DivergedAt, records(c.A.Diverged),
			render.Count(c.B.Diverged), differing(c.Differ))
	case Damaged:
		return c.damageText()
	case Compacted:
		return fmt.Sprintf("a lacks %s, b %s that the log cleaner may take", records(c.A.Missing), records(c.B.Missing))
	case AAhead:
		return "b ends " + offsets(c.A.End-c.B.End) + " earlier"
	case BAhead:
		return "a ends " + offsets(c.B.End-c.A.End) + " earlier"
	case SameRecords:
		return strings.Join(c.storedOtherwise(), ", ")
	case OnlyA:
		return "b does not have it"
	case OnlyB:
		return "a does not have it"
	}
	return records(c.Same)
}

func differing(n int64) string {
	if n == 1 {
		return "of which those of 1 offset differ"
	}
	return "of which those of " + render.Count(n) + " offsets differ"
}

// storedOtherwise says how the same records are stored in other batches.
func (c *Comparison) storedOtherwise() []string {
	ways := []string{}
	add := func(is bool, text string) {
		if is {
			ways = append(ways, text)
		}
	}
	add(c.Converted, "another magic")
	add(c.Narrowed, "without what the older magic does not hold")
	add(c.Recoded, "another codec")
	add(c.Rebatched, "other batches")
	add(c.EpochsDiffer, "other leader epochs")
	return ways
}

// damageText says which side can't be compared in full, and whether the other one can help.
func (c *Comparison) damageText() string {
	var parts []string
	for _, s := range []struct {
		name  string
		log   *Log
		other string
	}{{"a", c.A, "b"}, {"b", c.B, "a"}} {
		if n := len(s.log.Damages); n > 0 {
			text := fmt.Sprintf("%s is damaged in %s", s.name, places(n))
			if s.log.Doubtful > 0 {
				text += fmt.Sprintf(", where %s has %s", s.other, records(s.log.Doubtful))
			}
			parts = append(parts, text)
		}
		if s.log.Lost > 0 {
			parts = append(parts, fmt.Sprintf("%s lacks %s from offset %d on, which no cleaning explains", s.name,
				records(s.log.Lost), s.log.FirstLost))
		}
	}
	return strings.Join(parts, "; ")
}

func places(n int) string {
	if n == most {
		return "1,000 places or more"
	}
	return render.Plural(int64(n), "place", "places")
}

func records(n int64) string { return render.Plural(n, "record", "records") }

func offsets(n int64) string { return render.Plural(n, "offset", "offsets") }

// appendLogs shows both logs, and the batches where they part.
func (c *Comparison) appendLogs(dst []byte, theme render.Theme) []byte {
	if c.Result == Identical && c.A.Start == c.B.Start {
		return dst
	}
	table := render.NewColumns("lnrrrr").Fit(theme, 5, 4)
	for _, s := range []struct {
		name  string
		log   *Log
		batch *Batch
	}{{"a", c.A, c.ABatch}, {"b", c.B, c.BBatch}} {
		if s.log == nil {
			continue
		}
		row := []string{s.name, render.Escaped(s.log.Path), "from " + itoa(s.log.Start), "", "", ""}
		if !s.log.noBytes {
			row[5] = render.Bytes(s.log.Bytes)
		}
		if s.log.read {
			row[3], row[4] = "to "+itoa(s.log.End), records(s.log.Records)
		}
		table.Row(row...)
	}
	dst = table.Append(dst, indent)
	batches := render.NewColumns("llllll").Fit(theme, 3, 4)
	for i, b := range []*Batch{c.ABatch, c.BBatch} {
		if b == nil {
			continue
		}
		batches.Row([]string{"a", "b"}[i], fmt.Sprintf("segment %d @%d", b.Segment, b.Pos),
			fmt.Sprintf("%d–%d", b.BaseOffset, b.LastOffset), epochText(b), timeText(b), producerOf(b))
	}
	return batches.Append(dst, indent)
}

func epochText(b *Batch) string {
	if b.LeaderEpoch < 0 {
		return "no epoch"
	}
	return fmt.Sprintf("epoch %d", b.LeaderEpoch)
}

func timeText(b *Batch) string {
	if b.MaxTimestamp == render.NoTimestamp {
		return "no time"
	}
	return render.Instant(b.MaxTimestamp)
}

func producerOf(b *Batch) string {
	if b.ProducerID < 0 {
		return "no producer id"
	}
	return fmt.Sprintf("producer %d/%d, seq %d", b.ProducerID, b.ProducerEpoch, b.BaseSequence)
}

// sentences tell what else there is to know.
func (c *Comparison) sentences() []string {
	var all []string
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if c.A == nil || c.B == nil {
		return nil
	}
	switch {
	case c.Nothing:
		say("No offset is in both: nothing was compared.")
	case c.Result == Diverged:
		say("%s are the same.", capital(records(c.Same)))
	case c.Result == Damaged:
		say("%s are the same. kseg verify says what is wrong; kseg salvage makes one copy of two.", capital(records(c.Same)))
	}
	if c.Range != nil {
		say("The first fingerprints that differ are those of offsets %d–%d.", c.Range.First, c.Range.Last)
	}
	for _, l := range []*Log{c.A, c.B} {
		if len(l.Damages) > 0 {
			say("Damage: %s.", l.Damages[0])
		}
		if n := l.leftOver(); n > 0 {
			say("%s has no segment in use, and %s left over, which kseg salvage --deleted reads.", l.Path,
				render.Plural(n, "that is", "that are"))
		}
	}
	if c.EpochsDiffer {
		say("The leader epochs differ from offset %d on, though the records do not.", c.EpochsDifferAt)
	}
	if t := c.Truncation; t != nil {
		all = append(all, c.truncationSentence(t))
	}
	if c.TopicIDsDiffer() {
		say("The topic ids differ: a has %s, b has %s; these are two topics of one name, or of two clusters.", c.A.TopicID,
			c.B.TopicID)
	}
	for _, s := range c.State {
		say("%s, %s: a has %s, b has %s.", s.File, s.What, s.A, s.B)
	}
	return all
}

// leftOver counts the segments of a log of which none is in use.
func (l *Log) leftOver() (n int64) {
	if l.Partition == nil || len(l.Partition.Segments) > 0 {
		return 0
	}
	for _, f := range l.Partition.Files {
		if f.Name.Kind == format.KindLog && f.Name.Suffix != "" {
			n++
		}
	}
	return n
}

func (c *Comparison) truncationSentence(t *Truncation) string {
	follower, leader := c.A, "b"
	if !t.FollowerIsA {
		follower, leader = c.B, "a"
	}
	if !t.Cuts {
		return fmt.Sprintf("By the leader epochs %s as a follower of %s would cut nothing: replication would not have "+
			"noticed.", t.follower(), leader)
	}
	return fmt.Sprintf("By the leader epochs %s as a follower of %s would cut its log at offset %d and fetch the rest; "+
		"it would lose %s.", t.follower(), leader, t.Offset, offsets(follower.End-t.Offset))
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Columns are those of -o table.
func Columns() []render.Column {
	return []render.Column{{Name: "partition"}, {Name: "result"}, {Name: "a from", Right: true},
		{Name: "a to", Right: true}, {Name: "a records", Right: true}, {Name: "b from", Right: true},
		{Name: "b to", Right: true}, {Name: "b records", Right: true}, {Name: "same", Right: true},
		{Name: "differ", Right: true}, {Name: "at", Right: true}}
}

// Row is the line of -o table.
func (c *Comparison) Row(theme render.Theme) []string {
	row := []string{render.Escaped(c.Name), c.paint(theme, titles[c.Result])}
	for _, l := range []*Log{c.A, c.B} {
		switch {
		case l == nil:
			row = append(row, "", "", "")
		case !l.read:
			row = append(row, itoa(l.Start), "", "")
		default:
			row = append(row, itoa(l.Start), itoa(l.End), itoa(l.Records))
		}
	}
	at := ""
	if c.Differ > 0 {
		at = itoa(c.DivergedAt)
	}
	return append(row, itoa(c.Same), itoa(c.Differ), at)
}

// Summary counts results.
type Summary struct {
	Partitions, Unexplained, Unjudged, Same int64
	Counts                                  map[Result]int64
}

// Add takes a comparison; batches as in Explained.
func (s *Summary) Add(c *Comparison, batches bool) {
	if s.Counts == nil {
		s.Counts = map[Result]int64{}
	}
	s.Partitions++
	s.Counts[c.Result]++
	s.Same += c.Same
	switch {
	case !c.Explained(batches):
		s.Unexplained++
	case c.Unjudged():
		s.Unjudged++
	}
}

// Text is the verdict: "different: 1 of 3 partitions (1 diverged, 2 identical), 1,234 records are the same".
func (s *Summary) Text() string {
	word := "the same"
	switch {
	case s.Unexplained > 0:
		word = "different"
	case s.Unjudged == s.Partitions:
		word = "not compared"
	case s.Unjudged > 0:
		word = "not all compared"
	}
	var parts []string
	for _, r := range slices.SortedFunc(maps.Keys(s.Counts), func(x, y Result) int {
		return cmp.Compare(order[x], order[y])
	}) {
		parts = append(parts, fmt.Sprintf("%d %s", s.Counts[r], titles[r]))
	}
	text := fmt.Sprintf("%s: %s (%s), %s the same", word, render.Plural(s.Partitions, "partition", "partitions"),
		strings.Join(parts, ", "), records(s.Same))
	return text
}
