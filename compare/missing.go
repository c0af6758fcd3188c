package compare

import "kseg/format"

// mostOpen bounds how many keys of missing records are remembered; with more, the cleaner is believed.
const mostOpen = 1 << 20

// missing judges the records that one side lacks, if the log cleaner took them: it takes what a later record of the
// same key supersedes, tombstones, markers, the records of aborted transactions, and those without a key. A record of
// a transaction supersedes others only once that is committed.
type missing struct {
	cleaned bool // the log cleaner works on this side, or has left traces
	any     bool
	holes   int64 // stretches without a record
	next    int64 // the offset after the last missing one
	first   int64
	keys    map[uint64]newest
	txns    map[int64][]undecided // of the open transactions, by producer
	tooMany bool
}

// newest is the last record of a key of which one is missing, as far as no transaction is open that has it.
type newest struct {
	offset  int64
	missing bool
	waiting int // missing records in open transactions
}

// undecided is a record of an open transaction.
type undecided struct {
	key     uint64
	offset  int64
	missing bool
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
		m.keys, m.txns = map[uint64]newest{}, map[int64][]undecided{}
	}
	if !b.Transactional() {
		m.settle(r.key, r.offset, true)
		return
	}
	n := m.keys[r.key]
	n.waiting++
	m.keys[r.key] = n
	m.txns[b.ProducerID] = append(m.txns[b.ProducerID], undecided{r.key, r.offset, true})
}

// settle notes a record that supersedes those of its key before it.
func (m *missing) settle(key uint64, offset int64, missing bool) {
	n, known := m.keys[key]
	switch {
	case !known && !missing || offset < n.offset:
	case !missing && n.waiting == 0:
		delete(m.keys, key)
	default:
		m.keys[key] = newest{offset, missing, n.waiting}
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
		if _, known := m.keys[r.key]; known && b.Transactional() {
			m.txns[b.ProducerID] = append(m.txns[b.ProducerID], undecided{r.key, r.offset, false})
		} else {
			m.settle(r.key, r.offset, false)
		}
	case commit, abort:
		m.end(b.ProducerID, r.kind == commit)
	}
}

// end ends a producer's transaction.
func (m *missing) end(producer int64, committed bool) {
	for _, u := range m.txns[producer] {
		n := m.keys[u.key]
		if u.missing {
			n.waiting--
			m.keys[u.key] = n
		}
		if committed {
			m.settle(u.key, u.offset, u.missing)
		} else if !n.missing && n.waiting == 0 {
			delete(m.keys, u.key)
		}
	}
	delete(m.txns, producer)
}

// lost counts what the cleaner would have kept, with the first offset of it: of transactions that are open at the end
// it takes nothing.
func (m *missing) lost(all int64) (n, first int64) {
	for _, open := range m.txns {
		for _, u := range open {
			if u.missing {
				m.settle(u.key, u.offset, true)
			}
		}
	}
	first = -1
	for _, k := range m.keys {
		if k.missing {
			if n++; first < 0 || k.offset < first {
				first = k.offset
			}
		}
	}
	switch {
	case !m.any || n == 0 && (m.cleaned || m.holes > 1):
		return 0, 0
	case !m.cleaned:
		return all, m.first
	}
	return n, first
}
