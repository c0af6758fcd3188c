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

// repeat is the first batch with a record that has no key, or one that a record before it has too.
type repeat struct {
	found  bool
	offset int64 // of the batch
}

// mostKeys bounds how many keys are looked at for one that comes twice.
const mostKeys = 1 << 20

var errEnough = errors.New("enough")

// keysSeen looks for a record that the log cleaner does not leave where it was.
type keysSeen struct {
	reader *format.RecordReader
	hashes map[uint64]bool
	found  bool
}

var keySeed = maphash.MakeSeed()

// batch takes the keys of a batch, up to the first that decides, and returns their hashes, 0 for a record without one.
func (k *keysSeen) batch(b *format.Batch) (hashes []uint64) {
	if isSkimmed(b) {
		for _, hash := range skimmedKeys(b) {
			k.key(hash)
		}
		return nil
	}
	defer k.reader.Release()
	var rec format.Record
	for k.reader.Reset(b); !k.enough() && k.reader.Next(&rec); {
		hash := uint64(0)
		if rec.Key != nil {
			hash = max(1, maphash.Bytes(keySeed, rec.Key))
		}
		k.key(hash)
		hashes = append(hashes, hash)
	}
	return hashes
}

func (k *keysSeen) key(hash uint64) {
	k.found = k.found || hash == 0 || k.hashes[hash]
	k.hashes[hash] = true
}

func (k *keysSeen) enough() bool { return k.found || len(k.hashes) >= mostKeys }

// firstRepeat looks for the first batch with a record that the log cleaner does not leave where it was.
func (p *partition) firstRepeat() (out repeat) {
	keys := keysSeen{reader: p.reader, hashes: map[uint64]bool{}}
	for _, seg := range p.segments {
		err := seg.log.View(func(data []byte) error {
			for scan := format.NewScanner(data, 0, seg.base); scan.Next(); {
				b := scan.Batch()
				if b == nil || b.Control() || !b.Valid() {
					continue
				}
				if keys.batch(b); keys.enough() {
					out = repeat{keys.found, b.BaseOffset}
					return errEnough
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
