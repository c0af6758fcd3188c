package state

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/schema"
)

// maxMetadataBatchBytes bounds what a batch of the metadata log may decompress to. The controller writes at most 8 MiB.
const maxMetadataBatchBytes = 64 << 20

// MetadataDir is the directory of the cluster's metadata log.
const MetadataDir = "__cluster_metadata-0"

// ReadImage folds the metadata log in p: the newest snapshot that has its footer, then all records behind it. A record
// counts though it may not be committed yet: a log does not tell how far its quorum had agreed. The error is for a log of
// which nothing could be read; lesser things are in the image's Problems.
func ReadImage(p *logdir.Partition) (*Image, error) {
	r := &imageReader{dir: p.Display, records: format.NewRecordReader(maxMetadataBatchBytes, nil), decoder: schema.NewDecoder()}
	found := r.snapshot(p)
	if !found {
		r.image = newImage()
	}
	for _, f := range p.All() {
		if f.Kind() == format.KindLog && f.Name.HasBase && !f.Name.Leftover() {
			r.segment(f)
		}
	}
	if r.image.inChange {
		r.problemf("the metadata transaction that begins last does not end; its changes are left out")
	}
	r.image.Problems = r.problems
	if !found && r.image.EndOffset == 0 {
		return nil, errors.Join(append([]error{fmt.Errorf("%s: there is no metadata in it", p.Display)}, r.problems...)...)
	}
	return r.image, nil
}

// imageReader folds files into an image. Its readers are reused.
type imageReader struct {
	dir      string
	image    *Image
	problems []error
	records  *format.RecordReader
	decoder  *schema.Decoder
	footer   bool
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

// snapshot reads the newest snapshot that is complete, and reports whether there is one.
func (r *imageReader) snapshot(p *logdir.Partition) bool {
	var files []*logdir.File
	for _, f := range p.All() {
		// bootstrap.checkpoint has no offset: its records are in the log as well.
		if f.Kind() == format.KindCheckpoint && f.Name.HasBase && !f.Name.Leftover() {
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b *logdir.File) int {
		return cmp.Or(cmp.Compare(b.Name.Base, a.Name.Base), cmp.Compare(b.Name.Epoch, a.Name.Epoch))
	})
	for _, f := range files {
		r.image, r.footer = newImage(), false
		// Offsets inside a snapshot start anew and mean nothing.
		if !r.fold(f, func(int64) bool { return true }) {
			continue
		}
		if !r.footer {
			r.problemf("%s has no footer and is passed over, as by a broker", f.Name.Raw)
			continue
		}
		r.image.SnapshotOffset, r.image.EndOffset = f.Name.Base, f.Name.Base
		return true
	}
	return false
}

// segment folds the records of a segment that the snapshot does not cover.
func (r *imageReader) segment(f *logdir.File) {
	im := r.image
	if f.Name.Base > im.EndOffset {
		r.problemf("offsets %d to %d are missing before %s", im.EndOffset, f.Name.Base-1, f.Name.Raw)
	}
	r.fold(f, func(offset int64) bool {
		if offset < im.EndOffset {
			return false
		}
		im.EndOffset = offset + 1
		return true
	})
}

// fold folds the records of a file whose offset is wanted. It reports whether the file could be read at all.
func (r *imageReader) fold(f *logdir.File, wanted func(offset int64) bool) bool {
	base := int64(-1)
	if f.Kind() == format.KindLog {
		base = f.Name.Base
	}
	next := base
	err := f.View(func(data []byte) error {
		s := format.NewScanner(data, 0, base)
		for s.Next() {
			if h := s.Hole(); h != nil {
				if h.Kind == format.Damage {
					r.problemf("%s: %d bytes at byte %d are no records", f.Name.Raw, h.Len, h.Pos)
				}
				continue
			}
			b := s.Batch()
			if next >= 0 && b.BaseOffset != next {
				r.problemf("%s: offset %d follows at byte %d where %d should", f.Name.Raw, b.BaseOffset, b.Pos, next)
			}
			if base >= 0 {
				next = b.NextOffset()
			}
			r.batch(f, b, wanted)
		}
		return nil
	})
	if err != nil {
		r.problem(err)
	}
	return err == nil
}

func (r *imageReader) batch(f *logdir.File, b *format.Batch, wanted func(offset int64) bool) {
	if !b.Valid() {
		r.problemf("%s: the batch at byte %d has a wrong checksum; its records are left out", f.Name.Raw, b.Pos)
		return
	}
	var rec format.Record
	r.records.Reset(b)
	for r.records.Next(&rec) {
		if !wanted(rec.Offset) {
			continue
		}
		if b.Control() {
			if c := r.decoder.DecodeControl(rec.Key, rec.Value); c.Type == schema.SnapshotFooter {
				r.footer = true
			}
			continue
		}
		// A record of a type that came after 4.4 says nothing that is asked for here.
		d := r.decoder.Decode(schema.Metadata, nil, rec.Value)
		if d.Value.Complete {
			r.image.fold(d.Value)
		} else if !errors.Is(d.Err, format.ErrUnsupported) {
			r.problemf("%s: the record at offset %d: %w", f.Name.Raw, rec.Offset, d.Err)
		}
	}
	if err := r.records.Err(); err != nil {
		r.problemf("%s: the batch at byte %d: %w", f.Name.Raw, b.Pos, err)
	}
}
