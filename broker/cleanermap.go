package broker

import (
	"hash/maphash"
	"math"
	"math/bits"

	"kseg/format"
)

// keyHash stands for a key. Kafka's cleaner takes an MD5; 80 bits of any good hash answer alike.
type keyHash struct {
	a uint64
	b uint16
}

// keyHasher hashes keys. All hashers of one round share the seeds.
type keyHasher struct{ a, b maphash.Seed }

func newKeyHasher() keyHasher { return keyHasher{maphash.MakeSeed(), maphash.MakeSeed()} }

func (h keyHasher) hash(key []byte) keyHash {
	return keyHash{maphash.Bytes(h.a, key), uint16(maphash.Bytes(h.b, key))}
}

// offsetMap is the last offset of each key of the dirty part of a log (OffsetMap), in 21 to 32 bytes a key: 256 tables
// by the first byte of the hash, each of which grows by half when it is three quarters full.
type offsetMap struct {
	tables [256]offsetTable
	base   int64 // the lowest offset there can be
	n      int64
	most   int64 // keys at which it is full
	// latest is the offset up to which keys are in the map; -1 before the first.
	latest int64
	wide   map[keyHash]int64 // offsets that are too far above base for a slot
	puts   putOffsets
}

// offsetTable has slots that are tried one after the other, from that on which the hash leads to.
type offsetTable struct {
	slots []offsetSlot
	n     int
}

// offsetSlot is free if rest is 0, which else is 16 bits of the hash and, above the base and one more, the offset.
type offsetSlot struct{ hash, rest uint64 }

const (
	offsetBits = 48
	wideOffset = 1<<offsetBits - 1 // it is in the map of those that are too large
)

func newOffsetMap(most, base int64) *offsetMap {
	m := &offsetMap{most: most, base: base, latest: -1, wide: map[keyHash]int64{}, puts: putOffsets{base: base}}
	for i := range m.tables {
		m.tables[i].slots = make([]offsetSlot, 8)
	}
	return m
}

func (m *offsetMap) table(key keyHash) *offsetTable { return &m.tables[key.a>>56] }

// home is the slot that a hash leads to.
func (t *offsetTable) home(hash uint64) int {
	at, _ := bits.Mul64(hash<<8, uint64(len(t.slots)))
	return int(at)
}

// find is where a key is, or where it goes.
func (t *offsetTable) find(key keyHash) *offsetSlot {
	for i := t.home(key.a); ; i++ {
		if i == len(t.slots) {
			i = 0
		}
		if s := &t.slots[i]; s.rest == 0 || s.hash == key.a && uint16(s.rest>>offsetBits) == key.b {
			return s
		}
	}
}

func (s *offsetSlot) key() keyHash { return keyHash{s.hash, uint16(s.rest >> offsetBits)} }

func (t *offsetTable) grow() {
	old := t.slots
	t.slots = make([]offsetSlot, len(old)+len(old)/2+8)
	for _, s := range old {
		if s.rest != 0 {
			*t.find(s.key()) = s
		}
	}
}

// warm touches the slot of a key. Done for many keys that are looked up soon, it brings all of them into the
// processor's cache at once, instead of one after the other. What it returns means nothing.
func (m *offsetMap) warm(key keyHash) uint64 {
	t := m.table(key)
	return t.slots[t.home(key.a)].rest
}

// full reports whether no record with a key is taken any more, be the key known or not.
func (m *offsetMap) full() bool { return m.n >= m.most }

// put notes a key's offset, which is not below the base, whatever was there before; valued says that the record has a
// value.
func (m *offsetMap) put(key keyHash, offset int64, valued bool) {
	m.latest = offset
	t := m.table(key)
	s := t.find(key)
	if s.rest == 0 {
		if t.n++; t.n > len(t.slots)/4*3 {
			t.grow()
			s = t.find(key)
		}
		m.n++
	} else {
		m.puts.replace(m.offset(key, s))
	}
	m.puts.add(offset, valued)
	s.hash, s.rest = key.a, uint64(key.b)<<offsetBits
	if above := uint64(offset-m.base) + 1; above < wideOffset {
		s.rest |= above
		return
	}
	s.rest |= wideOffset
	m.wide[key] = offset
}

// get is the offset noted for a key, -1 if it is not there.
func (m *offsetMap) get(key keyHash) int64 {
	if s := m.table(key).find(key); s.rest != 0 {
		return m.offset(key, s)
	}
	return -1
}

func (m *offsetMap) offset(key keyHash, s *offsetSlot) int64 {
	if above := int64(s.rest & wideOffset); above < wideOffset {
		return m.base + above - 1
	}
	return m.wide[key]
}

// each calls fn with all keys and what is noted for them.
func (m *offsetMap) each(fn func(key keyHash, offset int64)) {
	for i := range m.tables {
		for j := range m.tables[i].slots {
			if s := &m.tables[i].slots[j]; s.rest != 0 {
				key := s.key()
				fn(key, m.offset(key, s))
			}
		}
	}
}

// putOffsets tells of the first offsets that were put into a map whether a later one has their key, so that the keys of
// their records need not be looked up: a putState an offset. It knows nothing if offsets do not rise.
type putOffsets struct {
	base  int64
	next  int64 // after the last batch
	last  int64
	any   bool
	words []uint64
}

// putState is what became of an offset: two bits.
type putState = uint64

const (
	putNot putState = iota
	putSuperseded
	putTombstone // the newest of its key, without a value
	putNewest    // the newest of its key, with one
)

// mostPutWords bounds the memory of putOffsets, to 8 MiB.
const mostPutWords = 1 << 20

// place is the word of an offset, and by how much its bits are shifted; false for one that is above what is known.
func (p *putOffsets) place(offset int64) (word int, shift uint, ok bool) {
	above := uint64(offset - p.base)
	return int(above / 32), uint(above % 32 * 2), above/32 < uint64(len(p.words))
}

// batch says that the offsets of a batch come next.
func (p *putOffsets) batch(b *format.Batch) {
	if b.BaseOffset < p.next || b.LastOffset < b.BaseOffset {
		p.forget()
	}
	p.next = b.NextOffset()
}

// forget gives up.
func (p *putOffsets) forget() { p.words, p.last, p.any = nil, math.MaxInt64, true }

// add notes an offset that was put.
func (p *putOffsets) add(offset int64, valued bool) {
	if p.any && offset <= p.last {
		p.forget()
		return
	}
	p.last, p.any = offset, true
	if n := uint64(offset-p.base)/32 + 1; n > uint64(len(p.words)) && n <= mostPutWords {
		p.words = append(p.words, make([]uint64, int(n)-len(p.words))...)
	}
	if word, shift, ok := p.place(offset); ok {
		if p.words[word] |= putTombstone << shift; valued {
			p.words[word] |= putNewest << shift
		}
	}
}

// replace notes that the key of an offset was put again.
func (p *putOffsets) replace(offset int64) {
	if word, shift, ok := p.place(offset); ok {
		p.words[word] = p.words[word]&^(putNewest<<shift) | putSuperseded<<shift
	}
}

// of is what became of the record of a batch at an offset.
func (p *putOffsets) of(b *format.Batch, offset int64) putState {
	if b.Legacy() || offset < b.BaseOffset || offset > b.LastOffset {
		return putNot
	}
	word, shift, ok := p.place(offset)
	if !ok {
		return putNot
	}
	return p.words[word] >> shift & putNewest
}

// alike is what became of all records of a batch, putNot if that is not the same or not known.
func (p *putOffsets) alike(b *format.Batch) putState {
	n, state := int32(0), putState(putNot)
	if b.Count <= 0 || int64(b.LastOffsetDelta) >= mostAlike {
		return putNot
	}
	for offset := b.BaseOffset; offset <= b.LastOffset; offset++ {
		switch s := p.of(b, offset); {
		case s == putNot: // a gap, if all records are found
		case n > 0 && s != state:
			return putNot
		default:
			n, state = n+1, s
		}
	}
	if n != b.Count {
		return putNot
	}
	return state
}

// mostAlike bounds the offsets of a batch that are looked at together.
const mostAlike = 1 << 20
