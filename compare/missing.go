package compare

import "kseg/format"

// mostOpen bounds how many keys of missing records are remembered; with more, the cleaner is believed.
const mostOpen = 1 << 20

// missing judges the records that one side lacks, if the log cleaner took them: it takes what a later record of the
// same key supersedes, tombstones, markers, the records of aborted transactions, and those without a key.
type missing struct {
	cleaned bool // the log cleaner works on this side, or has left traces
	any     bool
	holes   int64 // stretches without a record
	next    int64 // the offset after the last missing one
	first   int64
	keys    map[uint64]openKey
	txns    map[int64][]uint64 // of the producers of transactional ones
	tooMany bool
}

// openKey is a key of which a record is missing, while no later one has been seen.
type openKey struct {
	offset     int64
	producerID int64
}

// add takes the next missing record, of a batch of the other side.
func (m *missing) add(b *format.Batch, r *record) {
	if !m.any || r.offset != m.next {
		m.holes++
	}
	if !m.any {
		m.any, m.first = true, r.offset
	}
	m.next = r.offset + 1
	if r.kind != keyed || m.tooMany {
		return
	}
	if len(m.keys) == mostOpen {
		m.tooMany, m.keys, m.txns = true, nil, nil
		return
	}
	if m.keys == nil {
		m.keys, m.txns = map[uint64]openKey{}, map[int64][]uint64{}
	}
	m.keys[r.key] = openKey{r.offset, b.ProducerID}
	if b.Transactional() {
		m.txns[b.ProducerID] = append(m.txns[b.ProducerID], r.key)
	}
}

// open reports whether there are keys whose later records matter.
func (m *missing) open() bool { return len(m.keys) > 0 }

// seen takes any record of either side, in order; those of missing ones come before their add.
func (m *missing) seen(b *format.Batch, r *record) {
	if len(m.keys) == 0 {
		return
	}
	switch r.kind {
	case keyed, tombstone:
		delete(m.keys, r.key)
	case abort:
		for _, key := range m.txns[b.ProducerID] {
			if k, ok := m.keys[key]; ok && k.producerID == b.ProducerID {
				delete(m.keys, key)
			}
		}
		delete(m.txns, b.ProducerID)
	}
}

// lost counts what the cleaner would have kept, with the first offset of it; noKeys are missing records without a key.
func (m *missing) lost(all int64) (n, first int64) {
	switch {
	case !m.any:
		return 0, 0
	case !m.cleaned && (m.holes < 2 || len(m.keys) > 0):
		return all, m.first
	case len(m.keys) == 0:
		return 0, 0
	}
	first = -1
	for _, k := range m.keys {
		if first < 0 || k.offset < first {
			first = k.offset
		}
	}
	return int64(len(m.keys)), first
}
