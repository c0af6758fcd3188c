package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/schema"
	"kseg/walk"
)

// MetadataDir is the directory of the cluster's metadata log.
const MetadataDir = "__cluster_metadata-0"

// FoldOptions say how far a metadata log is folded, and who watches.
type FoldOptions struct {
	// Before is the offset after the last record that counts, nil: all do. A snapshot that ends after it does not count
	// either.
	Before *int64
	// Observe is told each change that a record of the log makes, in their order; those that a snapshot begins with are
	// none. It may be nil.
	Observe func(Change)
	// From is the snapshot to begin with, nil: the newest that is complete. Fresh begins with none. Torn takes From as far
	// as it goes, as a broker does.
	From  *logdir.File
	Fresh bool
	Torn  bool

	MaxBatchBytes int64 // what a batch may decompress to; 0: format.MostBatch
}

// ReadImage folds the metadata log in p: the newest snapshot that has its footer, then all records after it. A record
// counts though it may not be committed yet: a log does not tell how far its quorum had agreed. The error is for a log
// of which nothing could be read; lesser things are in the image's Problems.
func ReadImage(p *logdir.Partition) (*Image, error) { return FoldImage(p, FoldOptions{}) }

// FoldImage is ReadImage up to an offset.
func FoldImage(p *logdir.Partition, o FoldOptions) (im *Image, err error) {
	steady := p.Steady(func() error {
		if im, err = foldImage(p, o); err != nil {
			return err
		}
		return errors.Join(im.Problems...)
	})
	if im == nil && err == nil {
		err = steady
	}
	return im, err
}

func foldImage(p *logdir.Partition, o FoldOptions) (*Image, error) {
	r := newImageReader(p.Display, o)
	found := r.begin(p.All())
	for _, f := range logsOf(p.All()) {
		r.segment(f)
	}
	r.end()
	if !found && r.image.EndOffset == 0 && (o.Before == nil || *o.Before > 0) {
		return nil, r.nothing()
	}
	return r.image, nil
}

// ReadImageFile folds one snapshot, or one segment of a metadata log, without its neighbours.
func ReadImageFile(f *logdir.File, o FoldOptions) (*Image, error) {
	r := newImageReader(f.Display, o)
	if f.Kind() == format.KindCheckpoint {
		if image := r.snapshot(f); image != nil {
			r.image = image
		}
	} else {
		if f.Name.Base > 0 {
			r.lose(0, f.Name.Base-1)
		}
		r.segment(f)
	}
	r.end()
	if len(r.image.things) == 0 && r.image.EndOffset == 0 {
		return nil, r.nothing()
	}
	return r.image, nil
}

// Snapshots are the snapshots of a metadata log, from the oldest to the newest. bootstrap.checkpoint, which has no
// offset, is none: its records are in the log as well.
func Snapshots(p *logdir.Partition) []*logdir.File { return snapshotsOf(p.All()) }

func snapshotsOf(files []*logdir.File) []*logdir.File {
	var list []*logdir.File
	for _, f := range files {
		if f.Name.Of(format.KindCheckpoint) {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *logdir.File) int {
		return cmp.Or(cmp.Compare(a.Name.Base, b.Name.Base), cmp.Compare(a.Name.Epoch, b.Name.Epoch))
	})
	return list
}

func logsOf(files []*logdir.File) []*logdir.File {
	var list []*logdir.File
	for _, f := range files {
		if f.Name.Of(format.KindLog) {
			list = append(list, f)
		}
	}
	slices.SortStableFunc(list, func(a, b *logdir.File) int { return cmp.Compare(a.Name.Base, b.Name.Base) })
	return list
}

// imageReader folds files into an image. Its readers are reused.
type imageReader struct {
	FoldOptions
	dir      string
	image    *Image
	problems []error
	records  *format.RecordReader
	decoder  *schema.Decoder
	footer   bool
	endMs    *int64 // lastContainedLogTimestamp of the snapshot
	// damaged is set while bytes are after the last good batch that are none, and how many offsets they had is not known
	// yet.
	damaged bool
	delta   int64 // the bytes of the present delta
}

func newImageReader(dir string, o FoldOptions) *imageReader {
	return &imageReader{FoldOptions: o, dir: dir, image: newImage(), decoder: schema.NewDecoder(),
		records: format.NewRecordReader(cmp.Or(o.MaxBatchBytes, format.MostBatch), nil)}
}

// maxProblems is how many problems of one metadata log are told apart: more tell nothing new.
const maxProblems = 20

func (r *imageReader) problem(err error) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, err)
	}
}

func (r *imageReader) problemf(text string, args ...any) {
	r.problem(fmt.Errorf("%s: %w", r.dir, fmt.Errorf(text, args...)))
}

// nothing is the error of a log of which nothing could be read.
func (r *imageReader) nothing() error {
	if len(r.problems) > 0 {
		return fmt.Errorf("there is no metadata in it: %w", r.problems[0])
	}
	return fmt.Errorf("%s: there is no metadata in it", r.dir)
}

// begin reads the newest snapshot that is complete, and reports whether there is one. One that is damaged is taken only
// if no other is there, and the log does not begin at offset 0.
func (r *imageReader) begin(files []*logdir.File) bool {
	logs := logsOf(files)
	switch {
	case r.Fresh:
		return false
	case r.Torn && r.From != nil:
		im := r.snapshot(r.From)
		if im != nil {
			r.image = im
		}
		return im != nil
	case r.From != nil:
		files = []*logdir.File{r.From}
	}
	var second *Image
	for _, f := range slices.Backward(snapshotsOf(files)) {
		if r.Before != nil && f.Name.Base > *r.Before {
			continue
		}
		im := r.snapshot(f)
		switch {
		case im == nil:
			continue
		case len(im.Lost) == 0:
			r.image = im
			return true
		case second == nil:
			second = im
		}
	}
	if second == nil || len(logs) > 0 && logs[0].Name.Base == 0 {
		r.image = newImage()
		return false
	}
	r.image = second
	return true
}

// snapshot reads a snapshot; nil if it could not be read or has no footer.
func (r *imageReader) snapshot(f *logdir.File) *Image {
	r.image, r.footer, r.endMs = newImage(), false, nil
	read := r.fold(f)
	im := r.image
	switch {
	case !read:
		return nil
	case !r.footer && !r.Torn:
		r.problemf("%s has no footer and is passed over, as by a broker", f.Name.Raw)
		return nil
	case len(im.Lost) > 0:
		im.Lost = []Lost{{First: 0, Last: max(f.Name.Base-1, 0)}}
	}
	im.Snapshot, im.From = f.Name.Raw, f
	if f.Name.HasBase {
		im.SnapshotOffset, im.EndOffset = f.Name.Base, f.Name.Base
	}
	if r.endMs != nil {
		im.EndMs, im.HasEndMs = *r.endMs, true
	}
	return im
}

// segment folds the records of a segment that the snapshot does not cover.
func (r *imageReader) segment(f *logdir.File) {
	im := r.image
	im.observe = r.Observe
	if im.settled == nil {
		im.fromELR = im.Snapshot == "" || im.hasELR()
	}
	im.rebase()
	r.delta = 0
	base := f.Name.Base
	if r.Before != nil {
		base = min(base, *r.Before)
	}
	if base > im.EndOffset {
		r.problemf("offsets %d to %d are missing before %s", im.EndOffset, base-1, f.Name.Raw)
		r.lose(im.EndOffset, base-1)
	}
	if base < f.Name.Base {
		return
	}
	if !r.fold(f) {
		r.damaged = true
	}
}

// lose notes that offsets were lost, and goes on after them.
func (r *imageReader) lose(first, last int64) {
	im := r.image
	im.EndOffset = last + 1
	if n := len(im.Lost); n > 0 && im.Lost[n-1].Last+1 == first {
		im.Lost[n-1].Last = last
		return
	}
	im.Lost = append(im.Lost, Lost{First: first, Last: last})
}

// end closes what is open after the last record.
func (r *imageReader) end() {
	im := r.image
	if im.inChange && (r.Before == nil || im.EndOffset < *r.Before) {
		r.problemf("the metadata transaction that begins last does not end; its changes are left out")
	}
	if r.damaged && (r.Before == nil || im.EndOffset < *r.Before) {
		im.Lost = append(im.Lost, Lost{First: im.EndOffset, Open: true})
	}
	im.Problems, im.observe = r.problems, nil
}

// fold folds the records of a file. It reports whether the file could be read at all.
func (r *imageReader) fold(f *logdir.File) bool {
	base := int64(-1)
	if f.Kind() == format.KindLog {
		base = f.Name.Base
	}
	next, log := base, &walk.Log{File: f, Base: base}
	err := walk.Read(context.Background(), log, nil, func(b *format.Batch, h *format.Hole) bool {
		if h != nil && r.Torn && base < 0 {
			return false // a node reads no further
		}
		if h != nil {
			r.damaged = r.damaged || h.Kind == format.Damage || h.Kind == format.Unreadable
			if h.Kind == format.Damage {
				r.problemf("%s: %d bytes at byte %d are no records", f.Name.Raw, h.Len, h.Pos)
			}
			return true
		}
		if next >= 0 && b.BaseOffset != next {
			r.problemf("%s: offset %d follows at byte %d where %d should", f.Name.Raw, b.BaseOffset, b.Pos, next)
			if b.BaseOffset > next && !r.damaged { // batches are missing, or it is this offset that is wrong
				r.damaged = true
				return true
			}
		}
		if base >= 0 {
			next = b.NextOffset()
			if r.Before != nil && b.BaseOffset >= *r.Before {
				return false
			}
		}
		r.batch(f, b)
		return true
	})
	if err != nil {
		r.problem(err)
	}
	if base < 0 && r.damaged {
		r.image.Lost, r.damaged = append(r.image.Lost, Lost{}), false
	}
	return err == nil
}

// batch folds the records of a batch that are wanted: those after what was folded before, or all of a snapshot.
func (r *imageReader) batch(f *logdir.File, b *format.Batch) {
	if !b.Valid() {
		r.damaged = true
		r.problemf("%s: the batch at byte %d has a wrong checksum; its records are left out", f.Name.Raw, b.Pos)
		return
	}
	im, log := r.image, f.Kind() == format.KindLog
	if log {
		r.damaged = false
		if b.BaseOffset > im.EndOffset {
			r.lose(im.EndOffset, b.BaseOffset-1)
		}
		if b.BaseOffset >= im.EndOffset {
			if r.delta += b.Size(); r.delta > maxDelta {
				im.rebase()
				r.delta = b.Size()
			}
		}
	}
	var rec format.Record
	defer r.records.Release()
	r.records.Reset(b)
	for r.records.Next(&rec) {
		if log && (rec.Offset < im.EndOffset || r.Before != nil && rec.Offset >= *r.Before) {
			continue
		}
		if log {
			im.EndOffset, im.EndMs, im.HasEndMs = rec.Offset+1, rec.Timestamp, true
		}
		if b.Control() {
			r.control(&rec)
		} else {
			r.record(f, &rec)
		}
	}
	if err := r.records.Err(); err != nil {
		r.damaged = true
		r.problemf("%s: the batch at byte %d: %w", f.Name.Raw, b.Pos, err)
	}
}

func (r *imageReader) record(f *logdir.File, rec *format.Record) {
	im := r.image
	at := Origin{Offset: rec.Offset, TimestampMs: rec.Timestamp}
	if f.Kind() == format.KindCheckpoint {
		at.Snapshot = f.Name.Raw
	}
	d := r.decoder.Decode(schema.Metadata, nil, rec.Value)
	switch {
	case d.Value.Complete:
		im.fold(at, d.Value)
	case errors.Is(d.Err, format.ErrUnsupported):
		im.Newer++
	default:
		r.problemf("%s: the record at offset %d: %w", f.Name.Raw, rec.Offset, d.Err)
		if n := len(im.Lost); n == 0 || im.Lost[n-1].Last != rec.Offset {
			im.Lost = append(im.Lost, Lost{First: rec.Offset, Last: rec.Offset})
		}
	}
}

// control reads what a control record says of the log or the snapshot itself.
func (r *imageReader) control(rec *format.Record) {
	c := r.decoder.DecodeControl(rec.Key, rec.Value)
	switch c.Type {
	case schema.SnapshotFooter:
		r.footer = true
	case schema.SnapshotHeader:
		if c.Value.Complete {
			ms := c.Value.Get("lastContainedLogTimestamp").Int()
			r.endMs = &ms
		}
	case schema.LeaderChange:
		if c.Value.Complete {
			r.image.Election = nil
			for _, v := range c.Value.Get("voters").Elements() {
				r.image.Election = append(r.image.Election, int32(v.Get("voterId").Int()))
			}
		}
	case schema.KRaftVoters:
		if c.Value.Complete {
			r.image.VoterSet = nil
			for _, v := range c.Value.Get("voters").Elements() {
				r.image.VoterSet = append(r.image.VoterSet, Voter{int32(v.Get("voterId").Int()), v.Get("voterDirectoryId").UUID()})
			}
		}
	}
}

// MetadataOffsetAfter is the offset of the first record of the log that is younger than a time; found is false if none
// is, and offset is then after the last record. Batches count by their largest timestamp first, so that a log is not
// decoded.
func MetadataOffsetAfter(files []*logdir.File, ms int64) (offset int64, found bool, err error) {
	records := format.NewRecordReader(format.MostBatch, nil)
	for _, f := range logsOf(files) {
		err = errors.Join(err, walk.Read(context.Background(), &walk.Log{File: f, Base: f.Name.Base}, nil,
			func(b *format.Batch, _ *format.Hole) bool {
				if b == nil || !b.Valid() {
					return true
				}
				if offset = b.NextOffset(); b.MaxTimestamp <= ms {
					return true
				}
				var rec format.Record
				for records.Reset(b); !found && records.Next(&rec); {
					if found = rec.Timestamp > ms; found {
						offset = rec.Offset
					}
				}
				return !found
			}))
		if found {
			break
		}
	}
	return offset, found, err
}
