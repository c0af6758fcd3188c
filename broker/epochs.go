package broker

import (
	"strconv"

	"kseg/format"
)

// epochs is a partition's leader epochs (LeaderEpochFileCache), and the file they are kept in.
type epochs struct {
	l       *loader
	entries []format.EpochEntry // both numbers increase
}

const epochsName = "leader-epoch-checkpoint"

// loadEpochs reads the file; one that is missing is made. What a broker cannot read keeps the log from being loaded.
func (l *loader) loadEpochs() error {
	l.epochs = &epochs{l: l}
	f := l.dir.files[epochsName]
	if f == nil {
		l.dir.create(epochsName, nil, 0)
		return nil
	}
	raw, err := f.read()
	if err != nil {
		return &unreadable{err}
	}
	decoded, err := format.DecodeLeaderEpochs(raw)
	if err != nil {
		return &Failure{Offline: format.Throws(err) == format.IOException, Place: epochsName, Err: err}
	}
	l.epochs.entries = decoded.Loaded()
	return nil
}

// append takes the epoch of a batch that is recovered, if it is above the last one.
func (e *epochs) append(epoch int32, start int64) error {
	if n := len(e.entries); epoch < 0 || n > 0 && e.entries[n-1].Epoch >= epoch {
		return nil
	}
	if start < 0 {
		return stops(epochsName, "epoch %d would begin at offset %d", epoch, start)
	}
	for n := len(e.entries); n > 0 && e.entries[n-1].StartOffset >= start; n-- {
		e.entries = e.entries[:n-1]
	}
	e.entries = append(e.entries, format.EpochEntry{Epoch: epoch, StartOffset: start})
	e.write()
	return nil
}

// latest is the last epoch, false if there is none.
func (e *epochs) latest() (int32, bool) {
	if n := len(e.entries); n > 0 {
		return e.entries[n-1].Epoch, true
	}
	return 0, false
}

// cutEnd drops the entries that begin at the offset or after it (truncateFromEndAsyncFlush).
func (e *epochs) cutEnd(end int64) {
	n := len(e.entries)
	for end >= 0 && n > 0 && e.entries[n-1].StartOffset >= end {
		n--
	}
	if n < len(e.entries) {
		e.entries = e.entries[:n]
		e.write()
	}
}

// cutStart lets the log begin at the offset: of the entries up to it the last is kept, and begins there
// (truncateFromStartAsyncFlush).
func (e *epochs) cutStart(start int64) {
	n := 0
	for n < len(e.entries) && e.entries[n].StartOffset <= start {
		n++
	}
	if n > 0 {
		e.entries = e.entries[n-1:]
		e.entries[0].StartOffset = start
		e.write()
	}
}

// clear drops all entries.
func (e *epochs) clear() {
	e.entries = nil
	e.write()
}

func (e *epochs) write() {
	raw := []byte("0\n" + strconv.Itoa(len(e.entries)) + "\n")
	for _, entry := range e.entries {
		raw = strconv.AppendInt(raw, int64(entry.Epoch), 10)
		raw = append(raw, ' ')
		raw = strconv.AppendInt(raw, entry.StartOffset, 10)
		raw = append(raw, '\n')
	}
	e.l.dir.create(epochsName, raw, int64(len(raw)))
	e.l.dir.remove(epochsName + ".tmp") // by way of which it is written
}
