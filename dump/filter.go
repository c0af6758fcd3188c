package dump

import (
	"bytes"
	"path"
	"regexp"

	"kseg/format"
	"kseg/schema"
)

// Filter chooses batches and records. The zero value passes everything.
type Filter struct {
	From, To         *int64 // offsets, inclusive
	Position         *int64 // a byte of a log, which is in the batch; nil: any
	FromTime, ToTime *int64 // epoch ms, inclusive
	ProducerID       *int64
	Key              []byte // nil: any
	Header           string // a header of this name; "": any
	HeaderValue      []byte // nil: any
	// Match passes records of which the key, the value, or a header's name or value matches; the other two look at the key
	// and at the value alone. A null matches nothing. nil: any.
	Match, MatchKey, MatchValue *regexp.Regexp
	Control                     bool // control batches only
	// Group, TopicName and TransactionalID are patterns (path.Match) for what decoded records of internal topics are
	// about; "": any.
	Group, TopicName, TransactionalID string
	// TopicIDs are the ids of the topics that TopicName matches, for records that have no name.
	TopicIDs map[format.UUID]bool
}

// decodes reports whether records have to be decoded to be judged.
func (f *Filter) decodes() bool { return f.Group != "" || f.TopicName != "" || f.TransactionalID != "" }

// decoded judges a record by what it is about.
func (f *Filter) decoded(r *schema.Record) bool {
	if f.Group != "" && !matches(f.Group, r.Key.Get("group")) && !matches(f.Group, r.Key.Get("groupId")) {
		return false
	}
	return (f.TransactionalID == "" || matches(f.TransactionalID, r.Key.Get("transactionalId"))) && (f.TopicName == "" ||
		f.aboutTopic(r))
}

// topicResource is the type of a topic's settings in the metadata log (ConfigResource.Type).
const topicResource = 2

// aboutTopic reports whether a record names the topic, or has its id: in its key, as a topic of the metadata, a
// partition or settings of it, or among the partitions of a transaction or an assignment.
func (f *Filter) aboutTopic(r *schema.Record) bool {
	v := r.Value
	if matches(f.TopicName, r.Key.Get("topic")) || v.Name == "TopicRecord" && matches(f.TopicName, v.Get("name")) ||
		v.Get("resourceType").Int() == topicResource && matches(f.TopicName, v.Get("resourceName")) {
		return true
	}
	if f.TopicIDs[v.Get("topicId").UUID()] || f.TopicIDs[r.Key.Get("topicId").UUID()] {
		return true
	}
	for _, list := range []string{"transactionPartitions", "topicPartitions"} {
		for _, p := range v.Get(list).Elements() {
			if matches(f.TopicName, p.Get("topic")) || f.TopicIDs[p.Get("topicId").UUID()] {
				return true
			}
		}
	}
	return false
}

func matches(pattern string, v schema.Value) bool {
	return v.Present() && MatchesName(pattern, v.Text())
}

// MatchesName reports whether a name is the pattern, or matches it (path.Match).
func MatchesName(pattern, name string) bool {
	ok, _ := path.Match(pattern, name) // the flag has checked the pattern
	return ok || name == pattern
}

// Active reports whether anything is filtered.
func (f *Filter) Active() bool {
	return f.From != nil || f.To != nil || f.Position != nil || f.ProducerID != nil || f.Control || f.needsRecords()
}

// needsRecords reports whether the header of a batch cannot tell of all its records that they pass.
func (f *Filter) needsRecords() bool { return f.FromTime != nil || f.ToTime != nil || f.needsContent() }

// needsContent reports whether what records hold decides.
func (f *Filter) needsContent() bool {
	return f.Key != nil || f.Header != "" || f.Match != nil || f.MatchKey != nil || f.MatchValue != nil || f.decodes()
}

// selection is what a batch's header says of its records.
type selection uint8

const (
	none selection = iota // no record passes
	some                  // the records have to be looked at
	all                   // every record passes
)

// batch judges by the header.
func (f *Filter) batch(b *format.Batch) selection {
	if !f.Active() {
		return all
	}
	if f.Position != nil && (*f.Position < b.Pos || *f.Position >= b.End()) {
		return none
	}
	if f.Control && !b.Control() || f.ProducerID != nil && b.ProducerID != *f.ProducerID || !f.overlaps(b) {
		return none
	}
	if f.needsRecords() {
		return some
	}
	if b.Count >= 1 && !f.cut(b) {
		return all
	}
	return some
}

// overlaps reports whether the ranges of offsets and of time may have a part of b.
func (f *Filter) overlaps(b *format.Batch) bool {
	if f.From != nil && b.LastOffset < *f.From || f.FromTime != nil && b.MaxTimestamp < *f.FromTime {
		return false
	}
	return f.To == nil || b.BaseOffset <= *f.To || b.Count < 0
}

// cut reports whether the offset range ends inside b.
func (f *Filter) cut(b *format.Batch) bool {
	return f.From != nil && b.BaseOffset < *f.From || f.To != nil && b.LastOffset > *f.To
}

// beyond reports whether no later batch of the file can pass.
func (f *Filter) beyond(b *format.Batch) bool {
	return f.To != nil && b.BaseOffset > *f.To && b.Count >= 0 || f.Position != nil && b.Pos > *f.Position
}

// emptyPasses judges a batch without records, which has offsets and a producer but nothing else to match.
func (f *Filter) emptyPasses(b *format.Batch) bool {
	return !f.needsRecords() && f.overlaps(b)
}

// record judges one record of a batch that passed.
func (f *Filter) record(b *format.Batch, r *format.Record) bool {
	switch {
	case f.From != nil && r.Offset < *f.From, f.To != nil && r.Offset > *f.To:
		return false
	case f.FromTime != nil && r.Timestamp < *f.FromTime, f.ToTime != nil && r.Timestamp > *f.ToTime:
		return false
	case f.Key != nil && (r.Key == nil || !bytes.Equal(r.Key, f.Key)):
		return false
	}
	return (f.Header == "" || f.hasHeader(r)) && f.matches(r)
}

// matches applies the regular expressions.
func (f *Filter) matches(r *format.Record) bool {
	in := func(re *regexp.Regexp, field []byte) bool { return field != nil && re.Match(field) }
	switch {
	case f.MatchKey != nil && !in(f.MatchKey, r.Key), f.MatchValue != nil && !in(f.MatchValue, r.Value):
		return false
	case f.Match == nil || in(f.Match, r.Key) || in(f.Match, r.Value):
		return true
	}
	headers := r.Headers
	for range r.HeaderCount {
		var key, value []byte
		if key, value, headers = format.NextHeader(headers); in(f.Match, key) || in(f.Match, value) {
			return true
		}
	}
	return false
}

func (f *Filter) hasHeader(r *format.Record) bool {
	headers := r.Headers
	for range r.HeaderCount {
		var key, value []byte
		key, value, headers = format.NextHeader(headers)
		if string(key) == f.Header && (f.HeaderValue == nil || value != nil && bytes.Equal(value, f.HeaderValue)) {
			return true
		}
	}
	return false
}

// window is --limit and --tail: units before skip are passed over, then left are printed (-1: all). Units are records
// in a deep dump and batches in a shallow one. A nil window prints everything.
type window struct {
	skip, left, seen int64
	counting         bool
}

// take counts a unit and reports whether to print it.
func (w *window) take() bool {
	if w == nil {
		return true
	}
	w.seen++
	switch {
	case w.counting, w.seen <= w.skip, w.left >= 0 && w.seen > w.left:
		return false
	}
	return true
}

// done reports whether nothing more will be printed.
func (w *window) done() bool { return w != nil && !w.counting && w.left >= 0 && w.seen >= w.left }
