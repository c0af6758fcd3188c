package format

import "strconv"

// checkpointVersion is the only version of the text checkpoints there has been.
const checkpointVersion = 0

// maxArrayLength is the longest list that a broker has room for; more is an OutOfMemoryError. It takes 4 bytes an entry
// of the heap of 1 GiB that kafka-server-start.sh asks for, if nothing else is set.
const maxArrayLength = 1 << 28

// CheckpointHeader is what the two lines at the top of a text checkpoint say (Kafka's CheckpointFile): the version and
// the number of entries. An empty file has neither and is valid, and so is one with a version alone.
type CheckpointHeader struct {
	Lines   int // of the header that are there: 0, 1 or 2
	Version int32
	Count   int32
}

// OffsetCheckpointEntry is one line "topic partition offset" of an offset checkpoint.
type OffsetCheckpointEntry struct {
	Line
	Topic     string
	Partition int32
	Offset    int64
}

// OffsetCheckpoint is one of the files recovery-point-offset-checkpoint, log-start-offset-checkpoint,
// replication-offset-checkpoint and cleaner-offset-checkpoint (OffsetCheckpointFile).
type OffsetCheckpoint struct {
	CheckpointHeader
	Entries []OffsetCheckpointEntry // in the file's order; of several for one partition the last counts
}

// DecodeOffsetCheckpoint reads an offset checkpoint as a broker does. The error is a *StateError about the first thing
// the broker's reader stumbles over; Entries holds every line that can be read all the same.
func DecodeOffsetCheckpoint(raw []byte) (OffsetCheckpoint, error) {
	var c OffsetCheckpoint
	err := readOffsetCheckpoint(raw, &c.CheckpointHeader, func(e OffsetCheckpointEntry) {
		c.Entries = append(c.Entries, e)
	})
	return c, err
}

var offsetCheckpointContent = Content{describe: (*describer).offsetCheckpoint, Row: "checkpoint_entry",
	Rows: func(raw []byte, row func([]Value) error) error {
		c, bad := DecodeOffsetCheckpoint(raw)
		for _, e := range c.Entries {
			if err := row([]Value{text("topic", "topic", e.Topic), number("partition", "partition", e.Partition),
				number("offset", "offset", e.Offset)}); err != nil {
				return err
			}
		}
		return bad
	}}

// readOffsetCheckpoint gives each entry to keep, which may be nil: then nothing is kept in memory.
func readOffsetCheckpoint(raw []byte, h *CheckpointHeader, keep func(OffsetCheckpointEntry)) error {
	return readCheckpoint(raw, h, 3, func(l textLine, cols []column) *StateError {
		partition, ok := parseJavaInt(cols[1].text, 32)
		if !ok {
			return l.fail("partition", cols[1].at, NumberFormatException, ErrValue, "an int32", cols[1].text)
		}
		offset, ok := parseJavaInt(cols[2].text, 64)
		if !ok {
			return l.fail("offset", cols[2].at, NumberFormatException, ErrValue, "an int64", cols[2].text)
		}
		if keep != nil {
			keep(OffsetCheckpointEntry{l.Line, string(cols[0].text), int32(partition), offset})
		}
		return nil
	})
}

// readCheckpoint reads the header into h and gives every line after it that has the right number of columns to entry.
// It goes on after a bad line and returns the first failure.
func readCheckpoint(raw []byte, h *CheckpointHeader, columns int, entry func(textLine, []column) *StateError) error {
	if err := checkUTF8("checkpoint", raw); err != nil {
		return err
	}
	r := &lineReader{raw: raw}
	first := readCheckpointHeader(r, h)
	if h.Lines < 2 {
		return first.orNil()
	}
	var cols []column
	found := 0
	for l, ok := r.next(); ok; l, ok = r.next() {
		var err *StateError
		if cols = splitColumns(cols[:0], l.text); len(cols) != columns {
			err = l.fail("checkpoint line", 0, IOException, ErrValue, strconv.Itoa(columns)+" columns", l.text)
		} else {
			err = entry(l, cols)
		}
		if err == nil {
			found++
		}
		if first == nil {
			first = err
		}
	}
	if first == nil && int64(found) != int64(h.Count) {
		end := textLine{Line: Line{Number: 2, Pos: countLinePos(raw)}}
		first = end.fail("number of entries", 0, IOException, ErrValue, strconv.Itoa(found), strconv.AppendInt(nil,
			int64(h.Count), 10))
	}
	return first.orNil()
}

// readCheckpointHeader reads the version and the count. A version or count that cannot be read leaves h.Lines as if the
// line were there, so that the entries below are still shown.
func readCheckpointHeader(r *lineReader, h *CheckpointHeader) *StateError {
	l, ok := r.next()
	if !ok {
		return nil
	}
	h.Lines = 1
	var first *StateError
	version, ok := parseJavaInt(l.text, 32)
	switch h.Version = int32(version); {
	case !ok:
		first = l.fail("checkpoint version", 0, IOException, ErrValue, strconv.Itoa(checkpointVersion), l.text)
	case version != checkpointVersion:
		first = l.fail("checkpoint version", 0, IOException, ErrUnsupported, strconv.Itoa(checkpointVersion), l.text)
	}
	if l, ok = r.next(); !ok {
		return first
	}
	h.Lines = 2
	count, ok := parseJavaInt(l.text, 32)
	h.Count = int32(count)
	if first != nil {
		return first
	}
	switch {
	case !ok:
		return l.fail("number of entries", 0, IOException, ErrValue, "an int32", l.text)
	case count < 0:
		return l.fail("number of entries", 0, IllegalArgumentException, ErrValue, "0 or more", l.text)
	case count > maxArrayLength:
		return l.fail("number of entries", 0, OutOfMemoryError, ErrValue, "a count that fits into memory", l.text)
	}
	return nil
}

// countLinePos is the byte position of the second line, which holds the number of entries.
func countLinePos(raw []byte) int64 {
	r := &lineReader{raw: raw}
	r.next()
	l, _ := r.next()
	return l.Pos
}
