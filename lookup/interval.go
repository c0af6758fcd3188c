package lookup

import (
	"fmt"
	"math"
	"math/bits"

	"kseg/format"
)

// DefaultInterval is Kafka's default of index.interval.bytes.
const DefaultInterval = 4096

// Sources of an interval, in the order in which they count.
const (
	FromFlag    = "flag"
	FromTopic   = "topic"
	FromEntries = "inferred"
	FromDefault = "default"
)

// evidence gathers what the indexes of a partition tell of the interval they were written with.
type evidence struct {
	format.IntervalInference
	// below is one less than the smallest distance between two entries of one entry an append, which bounds that writer's
	// interval from above.
	below int64
}

func (e *evidence) add(s *Survey) {
	if s.NoIndex {
		return
	}
	e.Add(s.Interval)
	if s.Interval.PerAppend && (e.below == 0 || s.Interval.Most < e.below) {
		e.below = s.Interval.Most
	}
}

// An Interval is the index.interval.bytes that an index was written with, as far as that can be known.
type Interval struct {
	Bytes  int64
	Source string
	// Least and Most are the smallest and the largest interval that explain the entries, Most math.MaxInt64 if there is no
	// entry. Known is false if no single interval does, or nothing was looked at.
	Least, Most int64
	Known       bool
	PerAppend   bool // the entries are one an append, which tells nothing of the interval
}

// interval chooses by the sources: what the caller supposes, what the topic is set to, what the entries tell, the
// default. Of a range of intervals that all explain the entries it takes the default if that is one of them, else the
// largest power of two, as people set them, else the smallest.
func (p *Partition) interval(supposed int64, e *evidence) Interval {
	least, most, ok := e.Range()
	out := Interval{Bytes: DefaultInterval, Source: FromDefault, Least: least, Most: most, Known: ok,
		PerAppend: e.PerAppend > 0}
	switch {
	case supposed >= 0:
		out.Bytes, out.Source = supposed, FromFlag
	case p.TopicInterval >= 0:
		out.Bytes, out.Source = p.TopicInterval, FromTopic
	case ok:
		out.Source = FromEntries
		if out.Bytes < least || out.Bytes > most {
			out.Bytes = likely(least, most)
		}
	}
	return out
}

func likely(least, most int64) int64 {
	if most < 1 || most == math.MaxInt64 {
		return least
	}
	return max(least, int64(1)<<(bits.Len64(uint64(most))-1))
}

// Explain says where the number comes from, to follow it in parentheses.
func (i Interval) Explain() string {
	switch i.Source {
	case FromFlag:
		return "supposed: --interval"
	case FromTopic:
		return "the topic's index.interval.bytes"
	case FromEntries:
		return "inferred from the entries: " + i.span()
	}
	if i.PerAppend {
		return "Kafka's default: one entry an append tells nothing of the interval"
	}
	return "Kafka's default: the entries do not tell"
}

func (i Interval) span() string {
	switch {
	case i.Most == math.MaxInt64:
		return fmt.Sprintf("%d or more", i.Least)
	case i.Least == i.Most:
		return fmt.Sprint(i.Least)
	}
	return fmt.Sprintf("%d … %d", i.Least, i.Most)
}

// bound is the most that a lookup may have to scan, in bytes: an interval without an entry, and the batch that went
// over it; and never more than the segment has.
func (i Interval) bound(s *Survey) int64 {
	return min(satAdd(i.Bytes, s.LargestBatch), s.LogSize)
}

// satAdd adds two numbers that are not negative.
func satAdd(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// bounded is true if the entries tell the largest interval too.
func (i Interval) bounded() bool { return i.Known && i.Most < math.MaxInt64 }
