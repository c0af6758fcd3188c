package explain

import (
	"fmt"
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
)

// Bounds on what is read of the files beside the one shown, over a whole run, so that hostile ones cannot make it
// endless.
const (
	mostChecked = 4 << 30 // bytes of batches whose checksums are computed
	mostHops    = 50 << 20
)

// surroundings answers what the files beside the one shown say. Both are nil if they are missing or not needed.
type surroundings struct {
	log       []byte // of the segment that an index belongs to
	logName   string
	index     *indexed // of a segment that is shown, or beside a time index
	indexName string

	checked int64 // bytes run through checksums
	hops    int64
	// at and offset are where the last walk over the log ended: the batch at this position begins after this offset.
	at, offset int64
}

// indexed are the positions of an offset index, for finding one.
type indexed struct {
	entry     map[int64]int // by position
	positions []int64       // ascending
	x         format.OffsetIndex
}

// besides are the kinds of files of the same segment that say more of one.
var besides = map[format.Kind][]format.Kind{
	format.KindLog:         {format.KindOffsetIndex},
	format.KindOffsetIndex: {format.KindLog},
	format.KindTimeIndex:   {format.KindOffsetIndex, format.KindLog},
}

// withSurroundings calls fn while the files beside e.file that matter to its kind can be read. Those that cannot be are
// not what was asked about.
func (e *explainer) withSurroundings(fn func() error) error {
	e.around = &surroundings{offset: -1}
	kinds := besides[e.file.Kind()]
	files := make([]*logdir.File, len(kinds))
	for i, kind := range kinds {
		files[i] = e.file.Sibling(kind)
	}
	return logdir.ViewAll(files, func(error) {}, func(views [][]byte) error {
		for i, data := range views {
			switch f := files[i]; {
			case data == nil:
			case f.Kind().Batches():
				e.around.log, e.around.logName = data, f.Name.Raw
			default:
				e.around.takeIndex(data, f.Name.Raw, max(e.base, 0))
			}
		}
		return fn()
	})
}

func (s *surroundings) takeIndex(data []byte, name string, base int64) {
	x := format.NewOffsetIndex(data, base).Logical()
	s.index, s.indexName = &indexed{entry: map[int64]int{}, x: x}, name
	for i := range x.Len() {
		at := int64(x.Entry(i).Position)
		if _, known := s.index.entry[at]; !known {
			s.index.entry[at] = i
			s.index.positions = append(s.index.positions, at)
		}
	}
	slices.Sort(s.index.positions)
}

// batchAt words what is at a position of the log, for an offset index entry of that relative offset.
func (s *surroundings) batchAt(position, base, relative int64) string {
	if s.log == nil {
		return "there is no .log beside it to look at"
	}
	if position < 0 || position >= int64(len(s.log)) {
		return fmt.Sprintf("beyond the end of %s, which has %s", s.logName, bytesOf(int64(len(s.log))))
	}
	b, err := format.DecodeBatch(s.log, position)
	switch {
	case err != nil || !s.valid(&b):
		return "no batch begins there in " + s.logName
	case base >= 0 && b.LastOffset == base+relative:
		return fmt.Sprintf("the batch there has %s and ends with this one", offsets(&b))
	case base >= 0 && b.LastOffset < base+relative:
		return fmt.Sprintf("the batch there has %s, all before this one", offsets(&b))
	case base >= 0 && !b.Legacy() && b.BaseOffset > base+relative:
		return fmt.Sprintf("the batch there has %s, all after this one: a lookup that starts here may start too late",
			offsets(&b))
	}
	return "the batch there has " + offsets(&b)
}

// valid checks a batch as far as the bound on that work allows.
func (s *surroundings) valid(b *format.Batch) bool {
	s.checked += b.Size()
	return s.checked > mostChecked || b.Valid()
}

// offsets words which offsets a batch has; of a wrapper only the last is known without opening it.
func offsets(b *format.Batch) string {
	if b.Legacy() || b.BaseOffset == b.LastOffset {
		return fmt.Sprintf("offset %d", b.LastOffset)
	}
	return fmt.Sprintf("offsets %d–%d", b.BaseOffset, b.LastOffset)
}

// batchOf words which batch holds an offset that the time index names. Entries come in ascending order, so each walk
// goes on where the last one ended, if the offset index knows nothing nearer.
func (s *surroundings) batchOf(offset int64) string {
	if s.log == nil {
		return "there is no .log beside it to look at"
	}
	pos := int64(0)
	if s.index != nil {
		pos = max(int64(s.index.x.Lookup(offset).Position), 0)
	}
	if s.offset < offset && s.at > pos {
		pos = s.at
	}
	for ; pos < int64(len(s.log)) && s.hops < mostHops; s.hops++ {
		b, err := format.DecodeBatch(s.log, pos)
		if err != nil {
			break
		}
		if b.LastOffset >= offset {
			return fmt.Sprintf("in the batch of %s at byte %d, whose latest record is of %s", offsets(&b), pos,
				instant(b.MaxTimestamp))
		}
		pos = b.End()
		s.at, s.offset = pos, b.LastOffset
	}
	return "in no batch of " + s.logName
}

// indexed words whether an index entry points to the batch at a position.
func (s *surroundings) indexed(position int64) string {
	if s.index == nil {
		return ""
	}
	if i, ok := s.index.entry[position]; ok {
		return fmt.Sprintf("Entry %d of %s points to this batch.", i, s.indexName)
	}
	before := int64(0)
	if i, _ := slices.BinarySearch(s.index.positions, position); i > 0 {
		before = s.index.positions[i-1]
	}
	return fmt.Sprintf("No entry of %s points to this batch; a lookup comes from byte %s, %s before it.", s.indexName,
		render.Count(before), bytesOf(position-before))
}
