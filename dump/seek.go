package dump

import (
	"kseg/format"
	"kseg/logdir"
)

// choose lists the files to print, in order. Where only some records or batches are wanted, directories give only the
// logs that a broker would read, and of those the ones whose range of offsets may have something.
func (d *dumper) choose(set *logdir.Set) []*logdir.File {
	files := set.Files()
	if !d.selective() {
		return files
	}
	kept := files[:0:0]
	for i, f := range files {
		if f.Partition == nil && f.LogDir == nil || isLog(f) && !f.Name.Leftover() && d.mayHold(files, i) {
			kept = append(kept, f)
		}
	}
	return kept
}

func isLog(f *logdir.File) bool {
	return f.Kind().Batches()
}

// mayHold judges a segment by its base offset and that of the next one of the partition.
func (d *dumper) mayHold(files []*logdir.File, i int) bool {
	f, filter := files[i], &d.opts.Filter
	if !f.Name.Of(format.KindLog) {
		return true
	}
	if filter.To != nil && f.Name.Base > *filter.To {
		return false
	}
	if filter.From == nil {
		return true
	}
	for _, next := range files[i+1:] {
		if next.Partition != f.Partition {
			break
		}
		if next.Name.Of(format.KindLog) && next.Name.Base > f.Name.Base {
			return next.Name.Base > *filter.From
		}
	}
	return true
}

// seek is the position from which the filter's range can be read: where the index sends a lookup of its beginning, or
// 0 if there is no index or it does not lead to a batch that fits.
func (d *dumper) seek(f *logdir.File, data []byte, base int64) int64 {
	if f.Kind() != format.KindLog || d.opts.Filter.From == nil && d.opts.Filter.FromTime == nil {
		return 0
	}
	index := f.Sibling(format.KindOffsetIndex)
	if index == nil {
		return 0
	}
	var at int64
	err := index.View(func(raw []byte) error {
		x := format.NewOffsetIndex(raw, base).Logical()
		target, ok := d.seekTarget(f, base)
		if ok {
			at = usable(x.Lookup(target), data, target)
		}
		return nil
	})
	if err != nil {
		return 0
	}
	return at
}

// seekTarget is the offset to look up: the filter's first one, or the one the time index gives for its first time.
func (d *dumper) seekTarget(f *logdir.File, base int64) (int64, bool) {
	if d.opts.Filter.From != nil {
		return *d.opts.Filter.From, true
	}
	times := f.Sibling(format.KindTimeIndex)
	if times == nil {
		return 0, false
	}
	offset := int64(-1)
	err := times.View(func(raw []byte) error {
		// Batches before the entry may be as late as its own timestamp, so it is looked up below the wanted one.
		offset = format.NewTimeIndex(raw, base).Logical().Lookup(*d.opts.Filter.FromTime - 1).Offset
		return nil
	})
	return offset, err == nil && offset >= base
}

// usable is the entry's position if an intact batch begins there that holds nothing the lookup would skip.
func usable(e format.OffsetEntry, data []byte, target int64) int64 {
	b, err := format.DecodeBatch(data, int64(max(e.Position, 0)))
	if e.Position <= 0 || err != nil || e.Offset > target || b.BaseOffset > target || !b.Valid() {
		return 0
	}
	return b.Pos
}
