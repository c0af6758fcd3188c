package walk

import (
	"context"
	"iter"
	"slices"

	"kseg/format"
)

// Chunk is what comes next in a log: sound batches, or damage. It is valid until the next one is asked for.
type Chunk struct {
	// Batches are sound: plausible, with the right checksum.
	Batches []format.Batch
	Damage  *Damage
	// Err: bytes could not be read, or the rest of the file could not.
	Err error
}

// Damage is a stretch of bytes that are no sound batch: Bad, a batch whose header can be read, or Hole, anything else.
type Damage struct {
	Bad  *format.Batch
	Hole *format.Hole
}

// Pos is where the damage begins, in bytes.
func (d *Damage) Pos() int64 {
	if d.Bad != nil {
		return d.Bad.Pos
	}
	return d.Hole.Pos
}

// Tail reports whether this is what the end of a log may look like after its broker was killed, or with preallocation.
func (d *Damage) Tail() bool {
	return d.Hole != nil && (d.Hole.Kind == format.TornTail || d.Hole.Kind == format.ZeroTail)
}

// Chunks yields what is in a log, in the order of the file, for those who read several logs side by side (with
// iter.Pull) and for those to whom damage matters more than speed. progress, which may be nil, is called with the bytes
// gone through since its last call.
func Chunks(ctx context.Context, log *Log, progress func(bytes int64)) iter.Seq[Chunk] {
	return func(yield func(Chunk) bool) {
		c := chunker{yield: yield}
		err := Fold(ctx, slices.Values([]*Log{log}), Options{Jobs: 1}, nil, func(r *Run[struct{}]) error {
			c.run(&r.Stretch)
			if progress != nil {
				progress(r.To - r.From)
			}
			return c.err
		})
		if err != nil && c.err == nil {
			yield(Chunk{Err: err})
		}
	}
}

// chunker makes chunks of runs.
type chunker struct {
	yield func(Chunk) bool
	err   error // the caller wants no more
}

func (c *chunker) give(chunk Chunk) {
	if c.err == nil && !c.yield(chunk) {
		c.err = context.Canceled
	}
}

// run gives the batches between what is none.
func (c *chunker) run(s *Stretch) {
	from, at := 0, 0
	flush := func() {
		if at > from {
			c.give(Chunk{Batches: s.Batches[from:at]})
		}
	}
	_ = s.Each(func(b *format.Batch) error {
		if !b.Plausible() || !b.Valid() {
			flush()
			from = at + 1
			c.give(Chunk{Damage: &Damage{Bad: b}})
		}
		at++
		return c.err
	}, func(h *format.Hole) error {
		flush()
		from = at
		chunk := Chunk{Damage: &Damage{Hole: h}}
		if h.Kind == format.Unreadable {
			chunk.Err = h.Err
		}
		c.give(chunk)
		return c.err
	})
	flush()
}
