package ls

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
)

// WhatIf supposes that the producers had sent the same records with another codec and batch.size.
type WhatIf struct {
	Codec format.Codec
	Level int   // of this program's library; 0: about the default of Kafka's producers
	Batch int64 // batch.size in bytes
	// Sample is how many batches of a partition are tried; 0: all.
	Sample int64
}

// ParseWhatIf reads codec=NAME[:LEVEL][,batch=BYTES]. The error is a sentence.
func ParseWhatIf(text string) (*WhatIf, error) {
	w := &WhatIf{Codec: -1, Batch: 16384}
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		var err error
		switch strings.TrimSpace(key) {
		case "codec":
			err = w.codec(strings.TrimSpace(value))
		case "batch":
			w.Batch, err = render.ParseSize(strings.TrimSpace(value))
			if err == nil && w.Batch > math.MaxInt32 {
				err = fmt.Errorf("batch=%s is more than a producer takes", value)
			}
		default:
			err = fmt.Errorf("%q is neither codec= nor batch=", part)
		}
		if err != nil {
			return nil, fmt.Errorf("%w; write codec=zstd:3,batch=65536", err)
		}
	}
	if w.Codec < 0 {
		return nil, fmt.Errorf("%q names no codec; write codec=zstd:3,batch=65536", text)
	}
	return w, nil
}

func (w *WhatIf) codec(text string) error {
	name, level, leveled := strings.Cut(text, ":")
	for c := format.CodecNone; c.Known(); c++ {
		if c.String() != name {
			continue
		}
		w.Codec = c
		if !leveled {
			return nil
		}
		least, most := c.Levels()
		n, err := strconv.Atoi(level)
		switch {
		case most == 0:
			return fmt.Errorf("%s has no levels", name)
		case err != nil || n < least || n > most:
			return fmt.Errorf("the levels of %s are %d to %d here, not %q", name, least, most, level)
		}
		w.Level = n
		return nil
	}
	return fmt.Errorf("%q is none of none, gzip, snappy, lz4, zstd", name)
}

// Title says what is supposed, and whose compression that is.
func (w *WhatIf) Title() string {
	level := ""
	if w.Level != 0 {
		level = fmt.Sprintf(" at level %d", w.Level)
	}
	return fmt.Sprintf("Then: the same records, in their order, by a producer with compression.type=%s%s and "+
		"batch.size=%d whose batches are all full. Compressed by this program's own libraries, with their levels; those of "+
		"a producer or broker may give a tenth more or less.", w.Codec, level, w.Batch)
}

// Repacked is what the data batches of a topic or partition take, and what they would take.
type Repacked struct {
	Batches, Bytes         int64 // that hold data, as stored
	ReadBatches, ReadBytes int64 // of those, what was compressed anew
	Records                int64 // that were
	ThenBatches, ThenBytes int64 // for all, in proportion if not all were read
	Unreadable             int64 // batches that could not be read
	newBatches, newBytes   int64
}

func (s *Repacked) add(o *Repacked) {
	s.Batches += o.Batches
	s.Bytes += o.Bytes
	s.ReadBatches += o.ReadBatches
	s.ReadBytes += o.ReadBytes
	s.Records += o.Records
	s.ThenBatches += o.ThenBatches
	s.ThenBytes += o.ThenBytes
	s.Unreadable += o.Unreadable
}

// scale turns what was read into numbers for the whole.
func (s *Repacked) scale() {
	s.ThenBatches, s.ThenBytes = s.newBatches, s.newBytes
	if s.ReadBytes > 0 && s.ReadBytes < s.Bytes {
		factor := float64(s.Bytes) / float64(s.ReadBytes)
		s.ThenBatches, s.ThenBytes = int64(float64(s.newBatches)*factor+0.5), int64(float64(s.newBytes)*factor+0.5)
	}
}

// packer sends records again.
type packer struct {
	what     *WhatIf
	compress format.Compressor
	fill     *format.Filler
	out      *Repacked
}

// repack sends the partition's records again.
func (p *Partition) repack(w *WhatIf, r *reader, segments []*logdir.Segment) {
	if r.packer == nil {
		r.packer = &packer{what: w, compress: format.Compressor{Level: w.Level}}
	}
	k := r.packer
	k.fill, k.out = format.NewFiller(w.Batch, w.Codec, &k.compress), &Repacked{}
	total := int64(0)
	for _, seg := range segments {
		total += seg.Log.Size
	}
	for _, seg := range segments {
		quota := int64(0)
		if w.Sample > 0 && total > 0 {
			quota = max(1, int64(float64(w.Sample)*float64(seg.Log.Size)/float64(total)))
		}
		if seg.Log.Irregular() != nil {
			continue
		}
		err := seg.Log.View(func(data []byte) error { return k.segment(r, seg.Log, data, seg.Base, quota) })
		p.problem(seg.Log.Display, err)
	}
	if err := k.close(); err != nil {
		p.problem(p.Display, err)
	}
	k.out.scale()
	p.Repacked = k.out
}

// stretches is in how many places of a segment a sample is taken.
const stretches = 16

// segment sends the records of a segment, or of quota batches of it.
func (k *packer) segment(r *reader, log *logdir.File, data []byte, base, quota int64) error {
	data, err := written(log, data)
	if err != nil {
		return err
	}
	var at []int64
	for sc := format.NewScanner(data, 0, base); sc.Next(); {
		if b := sc.Batch(); b != nil && !b.Control() && b.Count != 0 {
			k.out.Batches++
			k.out.Bytes += b.Size()
			at = append(at, b.Pos)
		}
	}
	n := int64(len(at))
	if quota == 0 || quota >= n {
		return k.send(r, data, at)
	}
	parts := min(stretches, quota)
	for i := range parts {
		from := i * n / parts
		if err := k.send(r, data, at[from:from+quota/parts]); err != nil {
			return err
		}
	}
	return nil
}

// send sends the records of the batches at these positions.
func (k *packer) send(r *reader, data []byte, at []int64) error {
	for _, pos := range at {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		b, err := format.DecodeBatch(data, pos)
		if err != nil {
			k.out.Unreadable++
			continue
		}
		var rec format.Record
		for r.records.Reset(&b); r.records.Next(&rec); {
			if err := k.record(&rec); err != nil {
				return err
			}
		}
		k.out.ReadBatches++
		k.out.ReadBytes += b.Size()
		if r.records.Err() != nil {
			k.out.Unreadable++
		}
	}
	return nil
}

func (k *packer) record(rec *format.Record) error {
	f, content := k.fill, rec.ContentSize()
	if f.Records > 0 && !f.HasRoom(f.Next(content, rec.Timestamp)) {
		if err := k.close(); err != nil {
			return err
		}
	}
	k.out.Records++
	return f.Add(rec, content, rec.Timestamp)
}

// close ends the present batch.
func (k *packer) close() error {
	if k.fill.Records == 0 {
		return nil
	}
	size, err := k.fill.Close()
	k.out.newBatches++
	k.out.newBytes += size
	return err
}

// WhatIfColumns head what WhatIfCells returns, after the name of the topic or partition.
var WhatIfColumns = []render.Column{{Name: "batches", Right: true}, {Name: "bytes", Right: true}, {Name: "then batches",
	Right: true}, {Name: "then bytes", Right: true}, {Name: "change", Right: true}, {Name: "tried"}}

// WhatIfCells are the row's name and what it takes now and then.
func (r *Row) WhatIfCells(st Style) []string {
	s := r.sums().Repacked
	change, tried := "", "all"
	if s.Bytes > 0 {
		change = fmt.Sprintf("%+.1f%%", 100*(float64(s.ThenBytes)/float64(s.Bytes)-1))
	}
	if s.ReadBatches < s.Batches {
		tried = render.Plural(s.ReadBatches, "batch", "batches")
	}
	return []string{r.StatsName(st), render.Count(s.Batches), render.Bytes(s.Bytes), render.Count(s.ThenBatches),
		render.Bytes(s.ThenBytes), change, tried}
}

// AppendWhatIfJSON appends the row as a what_if line.
func (r *Row) AppendWhatIfJSON(dst []byte, w *WhatIf) []byte {
	s := r.sums().Repacked
	o := render.NewObj(dst, "what_if")
	if r.Topic != nil {
		o.Str("topic", r.Topic.Name)
		o.Null("partition")
	} else {
		o.Str("topic", r.Partition.Topic)
		o.Int("partition", int64(r.Partition.PartitionDir.Partition))
	}
	o.Str("codec", w.Codec.String())
	o.IntOrNull("level", int64(w.Level), w.Level != 0)
	o.Int("batch_size", w.Batch)
	o.Int("batches", s.Batches)
	o.Int("bytes", s.Bytes)
	o.Int("tried_batches", s.ReadBatches)
	o.Int("tried_bytes", s.ReadBytes)
	o.Int("tried_records", s.Records)
	o.Int("then_batches", s.ThenBatches)
	o.Int("then_bytes", s.ThenBytes)
	o.Int("unreadable_batches", s.Unreadable)
	return o.Line()
}
