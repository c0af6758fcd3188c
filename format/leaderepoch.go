package format

import "strconv"

// EpochEntry is one line "epoch startOffset" of a leader-epoch-checkpoint: the first offset written under that epoch.
type EpochEntry struct {
	Line
	Epoch       int32
	StartOffset int64
}

// LeaderEpochs is a leader-epoch-checkpoint file (LeaderEpochCheckpointFile, KIP-101). In a well-formed one epochs and
// start offsets both strictly increase.
type LeaderEpochs struct {
	CheckpointHeader
	Entries []EpochEntry // in the file's order
}

// DecodeLeaderEpochs reads a leader-epoch-checkpoint as a broker does when it loads the partition. The error is a
// *StateError about the first thing the broker stumbles over; Entries holds every line that can be read all the same.
func DecodeLeaderEpochs(raw []byte) (LeaderEpochs, error) {
	var e LeaderEpochs
	err := readLeaderEpochs(raw, &e.CheckpointHeader, func(entry EpochEntry) { e.Entries = append(e.Entries, entry) })
	return e, err
}

var leaderEpochsContent = Content{describe: (*describer).leaderEpochs, Row: "epoch_entry",
	Rows: func(raw []byte, row func([]Value) error) error {
		c, bad := DecodeLeaderEpochs(raw)
		for _, e := range c.Entries {
			if err := row([]Value{number("epoch", "epoch", e.Epoch),
				number("startOffset", "start_offset", e.StartOffset)}); err != nil {
				return err
			}
		}
		return bad
	},
	entryOf: func(raw []byte, _, offset int64) (int, error) {
		c, err := DecodeLeaderEpochs(raw)
		if err != nil {
			return -1, err
		}
		return lastWhere(len(c.Entries), func(i int) bool { return c.Entries[i].StartOffset <= offset }), nil
	}}

// readLeaderEpochs gives each entry to keep, which may be nil: then nothing is kept in memory.
func readLeaderEpochs(raw []byte, h *CheckpointHeader, keep func(EpochEntry)) error {
	var negative *StateError
	err := readCheckpoint(raw, h, 2, func(l textLine, cols []column) *StateError {
		epoch, ok := parseJavaInt(cols[0].text, 32)
		if !ok {
			return l.fail("epoch", cols[0].at, NumberFormatException, ErrValue, "an int32", cols[0].text)
		}
		start, ok := parseJavaInt(cols[1].text, 64)
		if !ok {
			return l.fail("start offset", cols[1].at, NumberFormatException, ErrValue, "an int64", cols[1].text)
		}
		if keep != nil {
			keep(EpochEntry{l.Line, int32(epoch), start})
		}
		// The file is read whole before LeaderEpochFileCache takes the entries one by one and refuses these.
		if negative == nil && (epoch < 0 || start < 0) {
			negative = l.fail("leader epoch entry", 0, IllegalArgumentException, ErrValue, "no negative numbers", l.text)
		}
		return nil
	})
	if err == nil {
		err = negative.orNil()
	}
	return err
}

// OutOfOrder is the index of the first entry whose epoch or start offset is not above its predecessor's, or −1. A
// broker that loads the file warns and drops the entries before it that conflict.
func (e *LeaderEpochs) OutOfOrder() int {
	for i := 1; i < len(e.Entries); i++ {
		if e.Entries[i].Epoch <= e.Entries[i-1].Epoch || e.Entries[i].StartOffset <= e.Entries[i-1].StartOffset {
			return i
		}
	}
	return -1
}

// Loaded is what a broker has in memory after reading the file: the entries in order, without those that a later one of
// a lower epoch or start offset displaced.
func (e *LeaderEpochs) Loaded() EpochCache {
	var kept EpochCache
	for _, next := range e.Entries {
		kept.Assign(next)
	}
	return kept
}

// EpochCache is the leader epochs of a partition as a broker holds them (LeaderEpochFileCache): both numbers increase.
type EpochCache []EpochEntry

// Assign takes an epoch that begins. It is false if that changes nothing.
func (c *EpochCache) Assign(next EpochEntry) bool {
	kept := *c
	n := len(kept)
	if n > 0 && next.Epoch == kept[n-1].Epoch && next.StartOffset >= kept[n-1].StartOffset {
		return false
	}
	for n > 0 && (kept[n-1].Epoch >= next.Epoch || kept[n-1].StartOffset >= next.StartOffset) {
		n--
	}
	*c = append(kept[:n], next)
	return true
}

// CutEnd drops the entries that begin at the offset or behind it (truncateFromEndAsyncFlush). It is false if there are
// none.
func (c *EpochCache) CutEnd(end int64) bool {
	n := len(*c)
	for end >= 0 && n > 0 && (*c)[n-1].StartOffset >= end {
		n--
	}
	cut := n < len(*c)
	*c = (*c)[:n]
	return cut
}

// CutStart lets the log begin at the offset: of the entries up to it the last is kept, and begins there
// (truncateFromStartAsyncFlush). It is false if there are none.
func (c *EpochCache) CutStart(start int64) bool {
	n := 0
	for n < len(*c) && (*c)[n].StartOffset <= start {
		n++
	}
	if n == 0 {
		return false
	}
	*c = (*c)[n-1:]
	(*c)[0].StartOffset = start
	return true
}

// AppendFile appends the leader-epoch-checkpoint of the entries to dst.
func (c EpochCache) AppendFile(dst []byte) []byte {
	dst = append(strconv.AppendInt(append(dst, "0\n"...), int64(len(c)), 10), '\n')
	for _, e := range c {
		dst = append(strconv.AppendInt(dst, int64(e.Epoch), 10), ' ')
		dst = append(strconv.AppendInt(dst, e.StartOffset, 10), '\n')
	}
	return dst
}
