package dump

import (
	"errors"
	"fmt"
	"strconv"

	"kseg/format"
	"kseg/logdir"
)

// withLog prints the title of an index and calls fn with its bytes, its base offset and the bytes of the segment it is
// an index of; these are nil if that is not there.
func (d *dumper) withLog(f *logdir.File, fn func(raw []byte, base int64, log []byte) error) error {
	base, err := f.RequireBase()
	if err != nil {
		return err
	}
	if err := d.title(f); err != nil {
		return err
	}
	log := f.Sibling(format.KindLog)
	if log == nil {
		d.say(f, "there is no .log beside it, so its entries are printed without being checked")
		return f.View(func(raw []byte) error { return fn(raw, base, nil) })
	}
	return f.View(func(raw []byte) error {
		// A broker writes to the log first: one that is looked at after the index has all that this points to.
		if now, err := log.Again(); err == nil && now.ID() == log.ID() {
			log = now
		}
		return log.View(func(data []byte) error { return fn(raw, base, data) })
	})
}

// offsetIndex prints an .index and checks each entry against the log, as DumpLogSegments.dumpIndex does.
func (d *dumper) offsetIndex(f *logdir.File) error {
	return d.withLog(f, func(raw []byte, base int64, log []byte) error {
		x := format.NewOffsetIndex(raw, base)
		if x.Len() == 0 {
			return d.emptyIndex(f)
		}
		if d.opts.SanityCheck {
			return d.sanity(f, offsetIndexFault(x))
		}
		if log != nil && len(log) == 0 && x.ZeroTail() == x.Len() {
			return nil
		}
		return d.offsetEntries(f, x, log)
	})
}

func (d *dumper) emptyIndex(f *logdir.File) error {
	return d.head(fmt.Appendf(nil, "%s is empty.\n", d.shown(f)))
}

func (d *dumper) offsetEntries(f *logdir.File, x format.OffsetIndex, log []byte) error {
	out, path := d.entries(f, "index_entry"), absolute(f.Path)
	for i := range x.Len() {
		e := x.Entry(i)
		if i > 0 && e.Offset == x.Base() {
			break
		}
		if log != nil {
			d.checkOffsetEntry(f, path, e, log)
		}
		if d.opts.VerifyOnly {
			continue
		}
		if err := out.int("offset", "offset", e.Offset).int("position", "position", int64(e.Position)).end(); err != nil {
			return err
		}
	}
	return out.close()
}

// checkOffsetEntry demands that the batch at the entry's position ends in the entry's offset.
func (d *dumper) checkOffsetEntry(f *logdir.File, path string, e format.OffsetEntry, log []byte) {
	at := int64(e.Position)
	if at < 0 || at > int64(len(log)) {
		d.say(f, fmt.Sprintf("the entry of offset %d points to byte %d, and the log has %d bytes", e.Offset, at, len(log)))
		return
	}
	b, err := format.DecodeBatch(log, at)
	if err != nil {
		d.say(f, fmt.Sprintf("the entry of offset %d points to no batch: %v", e.Offset, err))
		return
	}
	if d.opts.MaxMessageSize > 0 && b.Size() > d.opts.MaxMessageSize {
		d.say(f, fmt.Sprintf("the entry of offset %d was not checked: its batch has %d bytes, above --max-message-size %d",
			e.Offset, b.Size(), d.opts.MaxMessageSize))
		return
	}
	if b.LastOffset != e.Offset {
		d.summary.mismatches.add(path, e.Offset, b.LastOffset)
	}
}

// sanity answers --index-sanity-check. Of an index whose check was asked for, failing it is damage.
func (d *dumper) sanity(f *logdir.File, fault error) error {
	if fault != nil {
		d.tell(f, problem{text: "the sanity check failed: " + fault.Error(), damage: true, fatalThere: true})
		return nil
	}
	if d.opts.Quiet {
		return nil
	}
	return d.write(fmt.Appendf(nil, "%s passed sanity check.\n", d.shown(f)))
}

// offsetIndexFault is what OffsetIndex.sanityCheck looks at.
func offsetIndexFault(x format.OffsetIndex) error {
	if n := x.Len(); n > 0 && x.Entry(n-1).Offset < x.Base() {
		return fmt.Errorf("its last offset %d is below its base offset %d", x.Entry(n-1).Offset, x.Base())
	}
	return strayBytes(x.StrayBytes(), 8)
}

func strayBytes(n, width int) error {
	if n == 0 {
		return nil
	}
	return errors.New(strconv.Itoa(n) + " bytes at its end are no whole entry of " + strconv.Itoa(width))
}

// timeIndexFault is what TimeIndex.sanityCheck looks at.
func timeIndexFault(x format.TimeIndex) error {
	if n := x.Len(); n > 0 {
		first, last := x.Entry(0), x.Entry(n-1)
		if last.TimestampMs < first.TimestampMs {
			return fmt.Errorf("its last timestamp %d is below its first %d", last.TimestampMs, first.TimestampMs)
		}
		if last.Offset < x.Base() {
			return fmt.Errorf("its last offset %d is below its base offset %d", last.Offset, x.Base())
		}
	}
	return strayBytes(x.StrayBytes(), 12)
}

// timeIndex prints a .timeindex and checks each entry against the log, as DumpLogSegments.dumpTimeIndex does.
func (d *dumper) timeIndex(f *logdir.File) error {
	return d.withLog(f, func(raw []byte, base int64, log []byte) error {
		x := format.NewTimeIndex(raw, base)
		if d.opts.SanityCheck {
			return d.sanity(f, timeIndexFault(x))
		}
		if log != nil && len(log) == 0 && x.ZeroTail() == x.Len() && !d.opts.Compat {
			return nil
		}
		return d.withIndex(f, base, func(index format.OffsetIndex) error { return d.timeEntries(f, x, index, log) })
	})
}

// withIndex calls fn with the offset index beside f, an empty one if there is none.
func (d *dumper) withIndex(f *logdir.File, base int64, fn func(format.OffsetIndex) error) error {
	index := f.Sibling(format.KindOffsetIndex)
	if index == nil {
		return fn(format.NewOffsetIndex(nil, base))
	}
	return index.View(func(raw []byte) error { return fn(format.NewOffsetIndex(raw, base)) })
}

func (d *dumper) timeEntries(f *logdir.File, x format.TimeIndex, index format.OffsetIndex, log []byte) error {
	out := d.entries(f, "time_index_entry")
	check := timeCheck{d: d, path: absolute(f.Path), log: log, index: index, previous: -1, found: -1}
	check.reader = format.NewRecordReader(d.opts.MaxBatchBytes, nil)
	for i := range x.Len() {
		e := x.Entry(i)
		if i > 0 && e.Offset == x.Base() {
			break
		}
		if log != nil {
			check.entry(e)
		}
		if d.opts.VerifyOnly {
			continue
		}
		if err := out.time("timestamp", "timestamp", e.TimestampMs).int("offset", "offset", e.Offset).end(); err != nil {
			return err
		}
	}
	return out.close()
}

// timeCheck holds time index entries against the batches. It goes through the log once as long as the entries are in
// order.
type timeCheck struct {
	d        *dumper
	path     string
	log      []byte
	index    format.OffsetIndex
	reader   *format.RecordReader
	previous int64 // timestamp of the entry before
	at       int64 // position of the batch found last
	found    int64 // the offset it was found for
}

func (c *timeCheck) entry(e format.TimeEntry) {
	s := &c.d.summary
	b, ok := c.find(e.Offset)
	switch {
	case !ok:
		s.notFound.add(c.path, e.Offset, -1)
	case b.LastOffset != e.Offset:
		s.notFound.add(c.path, e.Offset, b.LastOffset)
	default:
		if newest := c.maxTimestamp(&b); newest != e.TimestampMs {
			s.timestamps.add(c.path, e.TimestampMs, newest)
		}
		if c.previous >= e.TimestampMs {
			s.outOfOrder.add(c.path, e.TimestampMs, c.previous)
		}
	}
	c.previous = e.TimestampMs
}

// find is the first batch with that last offset or a higher one, from where the offset index sends a lookup.
func (c *timeCheck) find(offset int64) (format.Batch, bool) {
	at := int64(c.index.Lookup(offset).Position)
	if offset >= c.found && at < c.at {
		at = c.at
	}
	for at >= 0 && at < int64(len(c.log)) {
		b, err := format.DecodeBatch(c.log, at)
		if err != nil {
			break
		}
		if b.LastOffset >= offset {
			c.at, c.found = at, offset
			return b, true
		}
		at = b.End()
	}
	return format.Batch{}, false
}

func (c *timeCheck) maxTimestamp(b *format.Batch) int64 {
	newest := int64(-1)
	var r format.Record
	c.reader.Reset(b)
	for c.reader.Next(&r) {
		newest = max(newest, r.Timestamp)
	}
	return newest
}

// txnIndex prints a .txnindex.
func (d *dumper) txnIndex(f *logdir.File) error {
	if err := d.title(f); err != nil {
		return err
	}
	return f.View(func(raw []byte) error {
		x, out := format.NewTxnIndex(raw), d.entries(f, "txn_index_entry")
		for i := range x.Len() {
			e := x.Entry(i)
			if e.Version != 0 {
				d.say(f, fmt.Sprintf("byte %d: entry of version %d; only 0 is known, and a broker refuses to load the file",
					x.Position(i), e.Version))
			}
			out.int("version", "version", int64(e.Version)).int("producerId", "producer_id", e.ProducerID)
			out.int("firstOffset", "first_offset", e.FirstOffset).int("lastOffset", "last_offset", e.LastOffset)
			if err := out.int("lastStableOffset", "last_stable_offset", e.LastStableOffset).end(); err != nil {
				return err
			}
		}
		if n := x.StrayBytes(); n > 0 {
			d.say(f, fmt.Sprintf("the last %d bytes are no whole entry of 34; a broker ignores them", n))
		}
		return out.close()
	})
}
