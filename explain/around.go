package explain

import (
	"fmt"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
)

// surroundings answers what the files beside the one shown say. A file that is missing or cannot be read gives no answer.
type surroundings struct{ file *logdir.File }

// view calls fn with the bytes of the file of that kind beside the one shown.
func (s *surroundings) view(kind format.Kind, fn func(data []byte, name string)) bool {
	f := s.file.Sibling(kind)
	if f == nil {
		return false
	}
	return f.View(func(data []byte) error {
		fn(data, f.Name.Raw)
		return nil
	}) == nil
}

// batchAt words what is at a position of the log, for an offset index entry of that relative offset.
func (s *surroundings) batchAt(position, base, relative int64) (text string) {
	text = "there is no .log beside it to look at"
	s.view(format.KindLog, func(data []byte, name string) {
		if position < 0 || position >= int64(len(data)) {
			text = fmt.Sprintf("beyond the end of %s, which has %s", name, bytesOf(int64(len(data))))
			return
		}
		b, err := format.DecodeBatch(data, position)
		switch {
		case err != nil || !b.Valid():
			text = fmt.Sprintf("no batch begins there in %s", name)
		case base >= 0 && b.LastOffset == base+relative:
			text = fmt.Sprintf("the batch there has %s and ends with this one", offsets(&b))
		default:
			text = fmt.Sprintf("the batch there has %s", offsets(&b))
		}
	})
	return text
}

// offsets words which offsets a batch has; of a wrapper only the last is known without opening it.
func offsets(b *format.Batch) string {
	if b.Legacy() || b.BaseOffset == b.LastOffset {
		return fmt.Sprintf("offset %d", b.LastOffset)
	}
	return fmt.Sprintf("offsets %d–%d", b.BaseOffset, b.LastOffset)
}

// batchOf words which batch holds an offset that the time index names.
func (s *surroundings) batchOf(offset, timestampMs int64) (text string) {
	text = "there is no .log beside it to look at"
	start := int64(0)
	s.view(format.KindOffsetIndex, func(data []byte, _ string) {
		base, err := s.file.RequireBase()
		if err != nil {
			return
		}
		x := format.NewOffsetIndex(data, base).Logical()
		if i := lastWhere(x.Len(), func(i int) bool { return x.Entry(i).Offset <= offset }); i >= 0 {
			start = int64(x.Entry(int(i)).Position)
		}
	})
	s.view(format.KindLog, func(data []byte, name string) {
		text = "it is in no batch of " + name
		for pos := max(start, 0); pos < int64(len(data)); {
			b, err := format.DecodeBatch(data, pos)
			if err != nil {
				return
			}
			if b.LastOffset >= offset {
				text = fmt.Sprintf("in the batch of %s at byte %d, whose latest record is of %s", offsets(&b), pos, instant(b.MaxTimestamp))
				return
			}
			pos = b.End()
		}
	})
	return text
}

// indexed words whether an index entry points to the batch at a position.
func (s *surroundings) indexed(position int64) (text string) {
	s.view(format.KindOffsetIndex, func(data []byte, name string) {
		x := format.NewOffsetIndex(data, 0).Logical()
		before := int64(0)
		for i := range x.Len() {
			at := int64(x.Entry(i).Position)
			if at == position {
				text = fmt.Sprintf("Entry %d of %s points to this batch.", i, name)
				return
			}
			if at < position {
				before = max(before, at)
			}
		}
		text = fmt.Sprintf("No entry of %s points to this batch; a look-up comes from byte %s, %s before it.", name,
			render.Count(before), bytesOf(position-before))
	})
	return text
}
