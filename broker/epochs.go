package broker

import "kseg/format"

// epochs is a partition's leader epochs (LeaderEpochFileCache), and the file they are kept in.
type epochs struct {
	l       *loader
	entries format.EpochCache
	found   format.EpochCache // as the file has them
}

const (
	epochsName      = "leader-epoch-checkpoint"
	epochsTemporary = epochsName + ".tmp"
)

// loadEpochs reads the file; one that is missing is made. What a broker cannot read keeps the log from being loaded.
func (l *loader) loadEpochs() error {
	l.epochs = &epochs{l: l}
	if f := l.dir.bars(epochsName); f != nil {
		return f
	}
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
	l.epochs.entries, l.epochs.found = decoded.Loaded(), decoded.Loaded()
	return nil
}

// append takes the epoch of a batch that is recovered, if it is above the last one.
func (e *epochs) append(epoch int32, start int64) error {
	if last, ok := e.latest(); epoch < 0 || ok && last >= epoch {
		return nil
	}
	if start < 0 {
		return stops(epochsName, "epoch %d would begin at offset %d", epoch, start)
	}
	if e.entries.Assign(format.EpochEntry{Epoch: epoch, StartOffset: start}) {
		e.write()
	}
	return nil
}

// latest is the last epoch, false if there is none.
func (e *epochs) latest() (int32, bool) {
	if n := len(e.entries); n > 0 {
		return e.entries[n-1].Epoch, true
	}
	return 0, false
}

func (e *epochs) cutEnd(end int64) { e.writeLater(e.entries.CutEnd(end)) }

func (e *epochs) cutStart(start int64) { e.writeLater(e.entries.CutStart(start)) }

// clear drops all entries.
func (e *epochs) clear() {
	e.entries = nil
	e.write()
}

// writeLater is writeIfDirExists: where the file cannot be made the old one stays, and the broker goes on.
func (e *epochs) writeLater(changed bool) {
	if changed && e.l.dir.bars(epochsTemporary) == nil {
		e.write()
	}
}

func (e *epochs) write() {
	e.l.opens(epochsTemporary)
	raw := e.entries.AppendFile(nil)
	e.l.dir.create(epochsName, raw, int64(len(raw)))
	e.l.dir.remove(epochsTemporary) // by way of which it is written
}
