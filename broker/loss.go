package broker

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"kseg/format"
	"kseg/logdir"
)

// Loss is what a start takes away for ever.
type Loss struct {
	// Bytes are those of logs that are cut or removed, whether they made sense or not.
	Bytes int64
	// Ranges are offsets that can be read, or guessed from headers, in what goes, and are nowhere else, ascending.
	Ranges []LostRange
	// CutOff are likewise in .deleted files, but were taken away before, by replication.
	CutOff []LostRange
}

// LostRange is a range of offsets of a log that goes, or of its end.
type LostRange struct {
	File        string
	Pos         int64 // where what goes begins
	First, Last int64
	Batches     int64 // with a matching checksum
}

// Offsets is how many offsets are lost.
func (l *Loss) Offsets() int64 {
	n := int64(0)
	for _, r := range l.Ranges {
		n += r.Last - r.First + 1
	}
	return n
}

// measure compares the logs that were found with what is left of them.
func (l *loader) measure(out *Loaded) error {
	if l.dir.dir.Suffix == "delete" {
		return nil
	}
	kept := map[*logdir.File]int64{}
	for name, f := range l.dir.files {
		if n := format.ParseFileName(name); n.Kind == format.KindLog && !n.Leftover() && f.src != nil {
			kept[f.src] += f.have
		}
	}
	for _, f := range l.dir.disk {
		if f.Kind() != format.KindLog || !f.Name.HasBase || kept[f] >= f.Size {
			continue
		}
		if l.replaced(f) {
			continue
		}
		lost, err := l.lostIn(f, kept[f])
		if err != nil {
			return err
		}
		if len(lost) > 0 && l.cutOff(f, lost[0].First) {
			out.Lost.CutOff = append(out.Lost.CutOff, lost...)
			continue
		}
		if !f.Name.Leftover() {
			out.Lost.Bytes += f.Size - kept[f]
		} else if len(lost) > 0 {
			out.Lost.Bytes += f.Size
		}
		out.Lost.Ranges = append(out.Lost.Ranges, lost...)
	}
	slices.SortFunc(out.Lost.Ranges, func(a, b LostRange) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last))
	})
	return nil
}

// cutOff reports whether replication took the offsets of a removed log away, from the given one on: none of them was
// committed, and a later leader epoch begins below them, or another broker leads in one.
func (l *loader) cutOff(f *logdir.File, first int64) bool {
	if f.Name.Suffix != strings.TrimPrefix(deletedSuffix, ".") || l.opts.Watermark == nil || *l.opts.Watermark > first ||
		l.epochs == nil {
		return false
	}
	later := false
	_ = f.View(func(data []byte) error {
		b, err := format.DecodeBatch(data, 0)
		later = err == nil && !b.Legacy() && (l.opts.LedElsewhere != nil && l.opts.LedElsewhere(b.LeaderEpoch) ||
			slices.ContainsFunc(l.epochs.found, func(e format.EpochEntry) bool {
				return e.Epoch > b.LeaderEpoch && e.StartOffset <= first
			}))
		return nil
	})
	return later
}

// replaced reports whether a removed log was cleaned into one that is there: the cleaner gives that the name of the
// first of those it put together, which it renames too, and the time of the last of them, which was written later than
// those before it.
func (l *loader) replaced(f *logdir.File) bool {
	if f.Name.Suffix != strings.TrimPrefix(deletedSuffix, ".") {
		return false
	}
	s := floor(l.segments, f.Name.Base)
	if s == nil {
		return false
	}
	name := format.SegmentFileName(s.base, format.KindLog)
	if l.dir.disk[name+deletedSuffix] != nil {
		return true
	}
	into := l.dir.files[name]
	return into != nil && into.src != nil && s != l.segments[len(l.segments)-1] && gaveTime(into.src.ModTime, f.ModTime)
}

// gaveTime reports whether a cleaned log, whose time is set in whole milliseconds, can have that of another.
func gaveTime(cleaned, other time.Time) bool {
	return cleaned.Nanosecond()%int(time.Millisecond) == 0 && cleaned.UnixMilli() >= other.UnixMilli()
}

// lostIn are the offsets in a log from a position on that are in no other segment.
func (l *loader) lostIn(f *logdir.File, from int64) ([]LostRange, error) {
	r, any := LostRange{File: f.Name.Raw, Pos: from}, false
	err := f.View(func(data []byte) error {
		expected := f.Name.Base
		w := walker{s: &segment{l: l}, log: data[:min(from, int64(len(data)))]}
		for w.next() {
			expected = w.batch.NextOffset()
		}
		for scan := format.NewScanner(data, min(from, int64(len(data))), f.Name.Base); scan.Next(); {
			b := scan.Batch()
			if b == nil {
				continue
			}
			if !any {
				r.First, r.Last, any = b.BaseOffset, b.LastOffset, true
			}
			r.First, r.Last = min(r.First, b.BaseOffset), max(r.Last, b.LastOffset)
			if b.Valid() {
				r.Batches++
			}
		}
		if from > 0 && expected < r.First {
			r.First = expected
		}
		return nil
	})
	if err != nil {
		return nil, &unreadable{err}
	}
	if !any || r.Last < r.First {
		return nil, nil
	}
	if f.Name.Suffix == strings.TrimPrefix(deletedSuffix, ".") {
		if r.First = max(r.First, l.begun()); r.Last < r.First {
			return nil, nil
		}
	}
	return l.elsewhere(r)
}

// begun is the offset below which records were deleted on purpose: retention and DeleteRecords take segments from the
// oldest on, and rename their files before the leader epochs or a checkpoint tell of it.
func (l *loader) begun() int64 {
	if len(l.segments) == 0 {
		return l.opts.LogStart
	}
	return max(l.opts.LogStart, l.segments[0].base)
}

// elsewhere takes the offsets out of a range that other segments hold.
func (l *loader) elsewhere(r LostRange) ([]LostRange, error) {
	left := []LostRange{r}
	for _, s := range l.segments {
		if s.base > r.Last {
			break
		}
		end, err := s.nextOffset()
		if err != nil {
			continue // what cannot be read holds nothing
		}
		var rest []LostRange
		for _, r := range left {
			if end <= r.First || s.base > r.Last || end == s.base {
				rest = append(rest, r)
				continue
			}
			if s.base > r.First {
				before := r
				before.Last = s.base - 1
				rest = append(rest, before)
			}
			if end <= r.Last {
				r.First = end
				rest = append(rest, r)
			}
		}
		left = rest
	}
	return left, nil
}
