package verify

import (
	"errors"
	"fmt"
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/schema"
	"kseg/state"
)

// checkKRaft looks at what the metadata log has beside its segments: the state of the election, and the snapshots.
var checkKRaft = Check{
	Name:  "kraft",
	Group: "state",
	Codes: []Code{
		{"quorum-state-unreadable", Damage, "a quorum-state that a broker cannot read"},
		{"quorum-state-missing", Warning, "there is no quorum-state"},
		{"quorum-state-behind", Warning, "the quorum-state is of an older epoch than the log"},
		{"metadata-snapshot-damaged", Damage, "a snapshot of the metadata log with damaged bytes"},
		{"metadata-snapshot-incomplete", Damage, "a snapshot of the metadata log without its header or footer"},
		{"metadata-snapshot-needed", Damage, "the metadata log lacks its beginning, and no snapshot replaces it"},
		{"metadata-snapshot-ahead", Note, "the newest snapshot of the metadata log is ahead of the log"},
	},
	Partition: lookAtKRaft,
	LogDir:    lookAtBootstrap,
}

// lookAtBootstrap looks at metadata that a node begins with when it has none. Later it asks for little of them.
func lookAtBootstrap(l *logDir) {
	for _, f := range l.dir.Files {
		if f.Kind() != format.KindCheckpoint || f.Name.Leftover() || l.dir.Narrowed {
			continue
		}
		s := metadataSnapshot{driver: l.driver, unread: l.driver.notRead, file: f}
		s.read(func(finding Finding) {
			if b, _ := l.driver.start(l.dir); b != nil && !b.StopsAt(f.Display) {
				finding.Severity = Warning
				finding.Message += "; the next start goes well with it"
			}
			l.found(finding)
		})
	}
}

// ofQuorum reports whether a node reads the partition for its metadata log; what has its files elsewhere means nothing.
func (p *partition) ofQuorum() bool {
	return p.alone != nil || !p.dir.Named || p.dir.PartitionDir.String() == state.MetadataDir && p.inUse()
}

func lookAtKRaft(p *partition) {
	if !p.ofQuorum() {
		return
	}
	for _, f := range p.dir.Files {
		if f.Kind() == format.KindCheckpoint && !f.Name.Leftover() {
			s := metadataSnapshot{driver: p.driver, unread: p.unread, file: f}
			s.read(func(f Finding) { p.found(nil, f) })
		}
	}
	if f := p.file(format.KindQuorumState); f != nil {
		lookAtQuorumState(p, f)
	} else if p.dir.Named && p.whole() && p.batches() > 0 {
		p.found(nil, Finding{Code: "quorum-state-missing", Place: inFile(p.path(format.KindQuorumState.Info().Name), -1, -1),
			logPos:  -1,
			Message: "there is no such file; a controller that has forgotten its vote may vote twice in one election"})
	}
	if p.dir.Named && p.alone == nil {
		lookAtSnapshotRange(p)
	}
}

func lookAtQuorumState(p *partition, f *logdir.File) {
	raw, ok := p.readSmall(f)
	if !ok {
		return
	}
	q, err := format.DecodeQuorumState(raw)
	if err != nil {
		p.found(nil, stateError("quorum-state-unreadable", f.Rel, raw, err, "a broker or controller does not start with it"))
		return
	}
	if finding, odd := oddQuorumState(f.Rel, raw, &q); odd {
		p.found(nil, finding)
	}
	if p.hasLast && p.whole() && q.LeaderEpoch < p.lastBatch.LeaderEpoch {
		p.found(nil, Finding{Code: "quorum-state-behind", Place: inFile(f.Rel, 0, lineLength(raw, 0)), logPos: -1,
			Message: fmt.Sprintf("the last epoch is %d by this file, but %d by the log; a controller uses the log, and "+
				"has forgotten its vote", q.LeaderEpoch, p.lastBatch.LeaderEpoch),
			Evidence: []Evidence{{"leader epoch", itoa(int64(p.lastBatch.LeaderEpoch)) + " or more",
				itoa(int64(q.LeaderEpoch))}}})
	}
}

// lookAtSnapshotRange holds the names of the snapshots against the log.
func lookAtSnapshotRange(p *partition) {
	start, known := p.start()
	end, read := p.end()
	if !known || !read {
		return
	}
	var newest *logdir.File
	for _, f := range p.dir.Files {
		if f.Name.Of(format.KindCheckpoint) && (newest == nil || newest.Name.Epoch < f.Name.Epoch ||
			newest.Name.Epoch == f.Name.Epoch && newest.Name.Base < f.Name.Base) {
			newest = f
		}
	}
	switch {
	case start > 0 && (newest == nil || newest.Name.Base < start):
		p.found(p.segments[0], Finding{Code: "metadata-snapshot-needed", Place: p.segments[0].place(0, 0, 0, start-1),
			logPos:  -1,
			Message: fmt.Sprintf("the log begins at offset %d, and no snapshot has what was before", start)})
	case newest != nil && (newest.Name.Epoch > p.lastBatch.LeaderEpoch || newest.Name.Epoch == p.lastBatch.LeaderEpoch &&
		newest.Name.Base > end):
		p.found(nil, Finding{Code: "metadata-snapshot-ahead", Place: Place{newest.Rel, -1, -1, end, newest.Name.Base - 1},
			logPos: -1, since: end,
			Message: fmt.Sprintf("the snapshot is of offset %d and epoch %d, the log ends at %d and epoch %d", newest.Name.Base,
				newest.Name.Epoch, end, p.lastBatch.LeaderEpoch)})
	}
}

// metadataSnapshot reads a snapshot of the metadata log, which is a file of batches between a header and a footer.
type metadataSnapshot struct {
	driver         *driver
	unread         func(error)
	file           *logdir.File
	found          func(Finding)
	header, footer bool // seen: the header is the first record, the footer the last
	records        int64
	damaged        bool
}

func (s *metadataSnapshot) read(found func(Finding)) {
	s.found = found
	err := s.file.View(func(data []byte) error {
		scan := format.NewScanner(data, 0, -1)
		for scan.Next() {
			if h := scan.Hole(); h != nil {
				s.hole(data, h)
			} else {
				s.batch(data, scan.Batch())
			}
		}
		return nil
	})
	if err != nil {
		s.unread(err)
		return
	}
	switch {
	case s.damaged:
	case !s.header:
		s.incomplete("its first record is not the header")
	case !s.footer:
		s.incomplete("its last record is not the footer, so that records are missing at its end")
	}
}

func (s *metadataSnapshot) incomplete(why string) {
	s.found(Finding{Code: "metadata-snapshot-incomplete", Place: inFile(s.file.Rel, -1, -1), logPos: -1,
		Message: "the snapshot is incomplete: " + why})
}

func (s *metadataSnapshot) hole(data []byte, h *format.Hole) {
	s.damaged = true
	f := Finding{Code: "metadata-snapshot-damaged", Place: inFile(s.file.Rel, h.Pos, h.Len), logPos: -1}
	f.Message = plural(h.Len, "byte is", "bytes are") + " no batch: " + describe(data, h.Pos, h.Pos+h.Len)
	s.found(f)
}

func (s *metadataSnapshot) batch(data []byte, b *format.Batch) {
	f := Finding{Code: "metadata-snapshot-damaged", Place: inFile(s.file.Rel, b.Pos, b.Size()), logPos: -1}
	if s.driver.opts.Level >= CRC && !b.Valid() || !b.Plausible() {
		s.damaged = true
		f.Message = fmt.Sprintf("the checksum does not match: stored %#08x, computed %#08x", b.CRC, b.ComputeCRC())
		if cause, evidence := diagnose(data, b); b.Valid() {
			f.Message = fmt.Sprintf("the header cannot be right, though the checksum holds: base offset %d, leader epoch %d, "+
				"length %d; the checksum leaves these fields out", b.BaseOffset, b.LeaderEpoch, b.Size())
			f.Evidence = []Evidence{{"base offset", "0 or more", itoa(b.BaseOffset)}}
		} else if cause != "" {
			f.Message, f.Evidence = f.Message+"; "+cause, evidence
		}
		s.found(f)
		return
	}
	if err := s.readRecords(b); errors.Is(err, format.ErrTooLarge) {
		s.unread(fmt.Errorf("%s: %w", s.file.Display, err))
	} else if err != nil {
		s.damaged = true
		f.Message = "a record cannot be read: " + format.ReasonOf(err)
		s.found(f)
	}
}

// readRecords looks for header and footer. Below level Records it reads control batches only.
func (s *metadataSnapshot) readRecords(b *format.Batch) error {
	if !b.Control() && s.driver.opts.Level < Records {
		s.records, s.footer = s.records+max(int64(b.Count), 0), false
		return nil
	}
	decoder, reader := schema.NewDecoder(), s.driver.slowWorker.reader
	var rec format.Record
	reader.Reset(b)
	for reader.Next(&rec) {
		s.footer = false
		if b.Control() {
			switch decoder.DecodeControl(rec.Key, rec.Value).Type {
			case schema.SnapshotHeader:
				s.header = s.header || s.records == 0
			case schema.SnapshotFooter:
				s.footer = true
			}
		}
		s.records++
	}
	return reader.Err()
}

// oddQuorumState says whether a quorum-state is as Kafka writes it.
func oddQuorumState(file string, raw []byte, q *format.QuorumState) (Finding, bool) {
	if slices.Contains([]int16{0, 1}, q.DataVersion) {
		return oddFile(file, raw, quorumText(q))
	}
	return Finding{}, false
}

// quorumText is what Kafka writes for the state of an election.
func quorumText(q *format.QuorumState) string {
	if q.DataVersion == 1 {
		return fmt.Sprintf(`{"leaderId":%d,"leaderEpoch":%d,"votedId":%d,"votedDirectoryId":"%s","data_version":1}`,
			q.LeaderID, q.LeaderEpoch, q.VotedID, q.VotedDirectoryID)
	}
	voters := ""
	for i, id := range q.Voters {
		if i > 0 {
			voters += ","
		}
		voters += fmt.Sprintf(`{"voterId":%d}`, id)
	}
	return fmt.Sprintf(`{"clusterId":%q,"leaderId":%d,"leaderEpoch":%d,"votedId":%d,"appliedOffset":%d,`+
		`"currentVoters":[%s],"data_version":0}`, q.ClusterID,
		q.LeaderID, q.LeaderEpoch, q.VotedID, q.AppliedOffset, voters)
}
