package broker

import (
	"hash/maphash"
	"math/bits"
)

// keyHash stands for a key. Kafka's cleaner takes an MD5; any hash of 128 bits answers alike.
type keyHash struct{ a, b uint64 }

// keyHasher hashes keys. All hashers of one round share the seeds.
type keyHasher struct{ a, b maphash.Seed }

func newKeyHasher() keyHasher { return keyHasher{maphash.MakeSeed(), maphash.MakeSeed()} }

func (h keyHasher) hash(key []byte) keyHash {
	return keyHash{maphash.Bytes(h.a, key), maphash.Bytes(h.b, key)}
}

// offsetMap is the last offset of each key of the dirty part of a log (OffsetMap): 24 bytes a key in a table that is at
// most three quarters full.
type offsetMap struct {
	table []offsetSlot
	shift uint
	n     int64
	most  int64 // keys at which it is full
	// latest is the offset up to which keys are in the map; -1 before the first.
	latest int64
}

// offsetSlot is free if its offset is 0; others are one above the key's.
type offsetSlot struct {
	key    keyHash
	offset int64
}

const firstMapSlots = 1 << 10

func newOffsetMap(most int64) *offsetMap {
	m := &offsetMap{most: most, latest: -1}
	m.resize(firstMapSlots)
	return m
}

func (m *offsetMap) resize(slots int) {
	old := m.table
	m.table, m.shift = make([]offsetSlot, slots), uint(64-bits.TrailingZeros(uint(slots)))
	for _, s := range old {
		if s.offset != 0 {
			*m.slot(s.key) = s
		}
	}
}

// slot is where a key is, or where it goes.
func (m *offsetMap) slot(key keyHash) *offsetSlot {
	mask := len(m.table) - 1
	for i := int(key.a >> m.shift); ; i = (i + 1) & mask {
		if s := &m.table[i]; s.offset == 0 || s.key == key {
			return s
		}
	}
}

// full reports whether no record with a key is taken any more, be the key known or not.
func (m *offsetMap) full() bool { return m.n >= m.most }

// put notes a key's offset, which is not negative, whatever was there before.
func (m *offsetMap) put(key keyHash, offset int64) {
	m.latest = offset
	s := m.slot(key)
	if s.offset == 0 {
		if int(m.n) >= len(m.table)/4*3 {
			m.resize(2 * len(m.table))
			s = m.slot(key)
		}
		m.n++
	}
	*s = offsetSlot{key, offset + 1}
}

// get is the offset noted for a key, -1 if it is not there.
func (m *offsetMap) get(key keyHash) int64 { return m.slot(key).offset - 1 }
