package verify

import (
	"errors"
	"hash/maphash"
	"slices"

	"kseg/format"
)

// policy is whether the topic is compacted by its settings, false if they are not known.
func (p *partition) policy() (compact, known bool) {
	settings := p.driver.settings(p.dir.Parent)
	if settings.Image == nil || settings.Image.Topic(p.dir.Topic) == nil {
		return false, false
	}
	return slices.Contains(settings.Topic(p.dir.Topic, "cleanup.policy").List(), "compact"), true
}

// perhapsCompacted reports whether the log cleaner may have left a gap in the offsets before a batch, though nothing
// else tells of it: neither the settings nor the cleaner's checkpoint is there, and no two records below the gap have
// one key, of which the cleaner would have taken the first.
func (p *partition) perhapsCompacted(offset int64) bool {
	if _, known := p.policy(); known {
		return false
	}
	if dir := p.dir.Parent; dir != nil && p.driver.dirState(dir).Checkpoint(format.KindCleanerOffsetCheckpoint) != nil {
		return false
	}
	if p.repeat == nil {
		p.repeat = new(p.firstRepeat())
	}
	return !p.repeat.found || p.repeat.offset >= offset
}

// repeat is the first record that has no key, or one that a record before it has too.
type repeat struct {
	found  bool
	offset int64
}

// mostKeys bounds how many keys are looked at for one that comes twice.
const mostKeys = 1 << 20

var errEnough = errors.New("enough")

// firstRepeat looks for the first record that the log cleaner does not leave where it was.
func (p *partition) firstRepeat() repeat {
	seed, seen := maphash.MakeSeed(), map[uint64]bool{}
	var out repeat
	defer p.reader.Release()
	for _, seg := range p.segments {
		err := seg.log.View(func(data []byte) error {
			for scan := format.NewScanner(data, 0, seg.base); scan.Next(); {
				b := scan.Batch()
				if b == nil || b.Control() || !b.Valid() {
					continue
				}
				var rec format.Record
				for p.reader.Reset(b); p.reader.Next(&rec); {
					sum := maphash.Bytes(seed, rec.Key)
					if rec.Key == nil || seen[sum] {
						out = repeat{true, rec.Offset}
						return errEnough
					}
					if seen[sum] = true; len(seen) == mostKeys {
						return errEnough
					}
				}
			}
			return nil
		})
		if err != nil {
			return out // what could not be read is said where the segment is looked at
		}
	}
	return out
}
