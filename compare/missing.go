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

	// Missing records of open transactions, by producer: all of an aborted one are taken, however far the map of keys
	// went. What else is missing, until is the offset after.
	pending map[int64]stretch
	aborted bool // the last record seen ended such a transaction as aborted
	others  int64
	until   int64
}

// stretch is a number of records that end below an offset.
type stretch struct{ records, until int64 }

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
	switch {
	case m.tooMany:
		return
	case len(m.keys) == mostOpen || len(m.pending) == mostOpen:
		m.tooMany, m.keys, m.txns, m.pending = true, nil, nil, nil
		return
	case m.keys == nil:
		m.keys, m.txns, m.pending = map[uint64]newest{}, map[int64][]undecided{}, map[int64]stretch{}
	}
	switch {
	case b.Transactional() && !b.Control():
		m.pending[b.ProducerID] = stretch{m.pending[b.ProducerID].records + 1, m.next}
	case r.kind != abort || !m.aborted:
		m.take(stretch{1, m.next})
	}
	if r.kind != keyed {
		return
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

// take notes missing records that are of no aborted transaction.
func (m *missing) take(s stretch) { m.others, m.until = m.others+s.records, max(m.until, s.until) }

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

// open reports whether there are keys or transactions whose later records matter.
func (m *missing) open() bool { return len(m.keys)+len(m.pending) > 0 }

// seen takes any record of either side, in order; those of missing ones come before their add.
func (m *missing) seen(b *format.Batch, r *record) {
	if m.aborted = false; !m.open() {
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
	s, some := m.pending[producer]
	if m.aborted = some && !committed; committed {
		m.take(s)
	}
	delete(m.pending, producer)
	delete(m.txns, producer)
}

// finish settles what is open at the end: of such transactions the cleaner takes nothing.
func (m *missing) finish() {
	if m.tooMany {
		m.until = m.next
	}
	for _, s := range m.pending {
		m.take(s)
	}
	for _, open := range m.txns {
		for _, u := range open {
			if u.missing {
				m.settle(u.key, u.offset, true)
			}
		}
	}
}

// lost counts what the cleaner would have kept, with the first offset of it.
func (m *missing) lost(all int64) (n, first int64) {
	first = -1
	for _, k := range m.keys {
		if k.missing {
			if n++; first < 0 || k.offset < first {
				first = k.offset
			}
		}
	}
	switch {
	case !m.any || n == 0 && (m.cleaned || m.holes > 1 || m.others == 0 && !m.tooMany):
		return 0, 0
	case !m.cleaned:
		return all, m.first
	}
	return n, first
}
