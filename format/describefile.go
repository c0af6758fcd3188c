package format

import (
	"errors"
	"strconv"
)

// entries describes count entries of fixed width, which are there, field by field.
func (d *describer) entries(count int, fields []fieldLayout) {
	for i := range count {
		if d.stopped {
			return
		}
		d.proto.Entry = i
		d.prefix = index("entries", i) + "."
		for _, f := range fields {
			d.note(f.name, f.typ, f.check)
		}
	}
	d.proto.Entry, d.prefix = -1, ""
}

// fieldLayout is a field of a fixed-width entry.
type fieldLayout struct {
	name  string
	typ   LeafType
	check func(v int64, l *Leaf)
}

func notNegative(what string) func(int64, *Leaf) {
	return func(v int64, l *Leaf) {
		if v < 0 {
			l.Fault = illegal(what, l, "0 or more")
		}
	}
}

// tail describes what is after the entries of an index: n preallocated zero slots, and stray bytes.
func (d *describer) tail(zeroBytes int) {
	d.emit("zeroTail", zeroBytes, func(l *Leaf) { l.Role = RoleZeroTail })
	d.stray()
}

func (d *describer) stray() {
	d.emit("stray", len(d.buf)-d.pos, func(l *Leaf) { l.Role = RoleStray })
}

// offsetIndex describes an .index file.
func (d *describer) offsetIndex() {
	x := NewOffsetIndex(d.buf, 0)
	d.entries(x.Logical().Len(), []fieldLayout{
		{"relativeOffset", TypeInt32, notNegative("relative offset")},
		{"position", TypeInt32, notNegative("position")},
	})
	d.tail((x.Len() - x.Logical().Len()) * offsetEntrySize)
}

// timeIndex describes a .timeindex file.
func (d *describer) timeIndex() {
	x := NewTimeIndex(d.buf, 0)
	d.entries(x.Logical().Len(), []fieldLayout{
		{"timestamp", TypeInt64, notNegative("timestamp")},
		{"relativeOffset", TypeInt32, notNegative("relative offset")},
	})
	d.tail((x.Len() - x.Logical().Len()) * timeEntrySize)
}

// txnIndex describes a .txnindex file.
func (d *describer) txnIndex() {
	d.entries(NewTxnIndex(d.buf).Len(), []fieldLayout{
		{"version", TypeInt16, func(v int64, l *Leaf) {
			if v != txnIndexVersion {
				l.Fault = illegal("version", l, strconv.Itoa(txnIndexVersion))
			}
		}},
		{"producerId", TypeInt64, nil}, {"firstOffset", TypeInt64, nil}, {"lastOffset", TypeInt64, nil},
		{"lastStableOffset", TypeInt64, nil},
	})
	d.stray()
}

// producerSnapshot describes a .snapshot file. A wrong version or checksum is shown where it is, and the entries after
// it by the one layout there is.
func (d *describer) producerSnapshot() {
	s, err := DecodeProducerSnapshot(d.buf)
	fault, _ := err.(*Error)
	claim := func(l *Leaf) {
		if fault != nil && fault.Pos >= l.Start && fault.Pos < l.End {
			l.Fault = fault
		}
	}
	d.note("version", TypeInt16, func(_ int64, l *Leaf) { claim(l) })
	d.note("crc", TypeUint32, func(_ int64, l *Leaf) { claim(l) })
	count := d.note("count", TypeInt32, func(_ int64, l *Leaf) { claim(l) })
	if !d.ok() {
		return
	}
	n := s.Len()
	if s.Fault == SnapshotBadVersion {
		n = int(max(0, min(count, int64(d.left()/producerEntrySize))))
	}
	d.entries(n, []fieldLayout{{"producerId", TypeInt64, nil}, {"producerEpoch", TypeInt16, nil},
		{"lastSequence", TypeInt32, nil}, {"lastOffset", TypeInt64, nil}, {"offsetDelta", TypeInt32, nil},
		{"timestamp", TypeInt64, nil}, {"coordinatorEpoch", TypeInt32, nil}, {"currentTxnFirstOffset", TypeInt64, nil}})
	d.emit("stray", len(d.buf)-d.pos, func(l *Leaf) {
		l.Role = RoleStray
		claim(l)
	})
}

// textFault hangs the error of a text file's decoder on the leaf in which it is, or on the last one.
type textFault struct {
	fault *Error
	end   int64
}

// blame prepares to hang err on a leaf.
func (d *describer) blame(err error) {
	f := textFault{end: int64(len(d.buf))}
	var fault *Error
	if !errors.As(err, &fault) {
		return
	}
	f.fault = fault
	yield := d.yield
	d.yield = func(l Leaf) bool {
		if f.fault != nil && (f.fault.Pos < l.End || l.End == f.end) {
			l.Fault, f.fault = f.fault, nil
		}
		return yield(l)
	}
}

// line is the length of the next line without its end, and with it.
func (d *describer) line() (text, whole int) {
	r := lineReader{raw: d.buf, pos: d.pos}
	l, _ := r.next()
	return int(l.Len), r.pos - d.pos
}

// text emits a column or line of n bytes with what separates it from the next; an empty one has its separator alone.
func (d *describer) text(name string, n int) {
	d.emit(name, n, func(l *Leaf) { l.Type = TypeText })
}

// lines describes the rest of the file line by line.
func (d *describer) lines() {
	for i := 0; d.pos < len(d.buf) && !d.stopped; i++ {
		_, whole := d.line()
		d.text(index("lines", i), whole)
	}
}

// columns describes a line: columns by their names, each with one separator. More white space is a leaf of its own, and
// more columns than names are numbered.
func (d *describer) columns(names []string) {
	text, whole := d.line()
	end, next := d.pos+text, d.pos+whole
	for i := 0; d.pos < end && !d.stopped; {
		n := 0
		for d.pos+n < end && !isJavaSpace(d.buf[d.pos+n]) {
			n++
		}
		name := "blank"
		if n > 0 {
			name = index("column", i)
			if i < len(names) {
				name = names[i]
			}
			i++
		}
		if n++; d.pos+n > end { // the line end is the last column's
			n = next - d.pos
		}
		d.text(name, n)
	}
	d.text("lineEnd", next-d.pos)
}

// checkpoint describes a text checkpoint with entries of these columns.
func (d *describer) checkpoint(names []string, err error) {
	d.blame(err)
	for _, name := range []string{"version", "count"} {
		_, whole := d.line()
		d.text(name, whole)
	}
	for i := 0; d.pos < len(d.buf) && !d.stopped; i++ {
		d.proto.Entry = i
		d.prefix = index("entries", i) + "."
		d.columns(names)
	}
	d.proto.Entry, d.prefix = -1, ""
}

// offsetCheckpoint describes one of the four files with a line "topic partition offset" for each partition.
func (d *describer) offsetCheckpoint() {
	err := readOffsetCheckpoint(d.buf, &CheckpointHeader{}, nil)
	d.checkpoint([]string{"topic", "partition", "offset"}, err)
}

// leaderEpochs describes a leader-epoch-checkpoint.
func (d *describer) leaderEpochs() {
	err := readLeaderEpochs(d.buf, &CheckpointHeader{}, nil)
	d.checkpoint([]string{"epoch", "startOffset"}, err)
}

// partitionMetadata describes a partition.metadata file: names with the colon and a blank, and values.
func (d *describer) partitionMetadata() {
	_, err := DecodePartitionMetadata(d.buf)
	d.blame(err)
	for _, name := range []string{"version", "topicId"} {
		text, whole := d.line()
		colon := 0
		for colon+1 < text && (d.buf[d.pos+colon] != ':' || !isJavaSpace(d.buf[d.pos+colon+1])) {
			colon++
		}
		if colon+1 >= text {
			d.text(name+"Line", whole)
			continue
		}
		d.text(name+"Name", colon+2)
		d.text(name, whole-colon-2)
	}
	d.lines()
}

// metaProperties describes a meta.properties file.
func (d *describer) metaProperties() {
	_, err := DecodeMetaProperties(d.buf)
	d.blame(err)
	d.lines()
}

// quorumState describes a quorum-state file, of which a broker reads the first line.
func (d *describer) quorumState() {
	_, err := DecodeQuorumState(d.buf)
	d.blame(err)
	d.lines()
}

// cleanShutdown describes a .kafka_cleanshutdown marker.
func (d *describer) cleanShutdown() {
	_, err := DecodeCleanShutdown(d.buf)
	d.blame(err)
	d.lines()
}
