package compare

import (
	"kseg/format"
	"kseg/render"
)

// AppendJSON appends {"kind":"comparison",...}.
func (c *Comparison) AppendJSON(dst []byte) []byte {
	o := render.NewObj(dst, "comparison")
	o.StrOrNull("topic", format.TopicOf(c.Name))
	o.Str("partition", c.Name)
	o.Str("result", string(c.Result))
	appendLog(&o, "a", c.A)
	appendLog(&o, "b", c.B)
	o.IntOrNull("shared_from", c.SharedFrom, !c.Nothing)
	o.IntOrNull("shared_to", c.SharedTo, !c.Nothing)
	o.Int("same", c.Same)
	o.Int("differ", c.Differ)
	o.IntOrNull("diverged_at", c.DivergedAt, c.Differ > 0)
	if c.Range == nil {
		o.Null("range")
	} else {
		o.Open("range")
		o.Int("first_offset", c.Range.First)
		o.Int("last_offset", c.Range.Last)
		o.Close()
	}
	appendBatch(&o, "a_batch", c.ABatch)
	appendBatch(&o, "b_batch", c.BBatch)
	o.Strs("stored_otherwise", c.storedOtherwise())
	o.IntOrNull("epochs_differ_at", c.EpochsDifferAt, c.EpochsDiffer)
	if t := c.Truncation; t == nil {
		o.Null("truncation")
	} else {
		o.Open("truncation")
		o.Str("follower", t.follower())
		o.IntOrNull("offset", t.Offset, t.Cuts)
		o.Close()
	}
	o.OpenArray("state")
	for _, s := range c.State {
		o.Open("")
		o.Str("file", s.File)
		o.Str("what", s.What)
		o.Str("a", s.A)
		o.Str("b", s.B)
		o.Bool("contradicts", s.Contradicts)
		o.Close()
	}
	o.CloseArray()
	o.Strs("not_read", errorTexts(c.NotRead))
	return o.Line()
}

func appendLog(o *render.Obj, name string, l *Log) {
	if l == nil {
		o.Null(name)
		return
	}
	o.Open(name)
	o.Str("path", l.Path)
	o.Int("log_start_offset", l.Start)
	o.IntOrNull("log_end_offset", l.End, l.read)
	o.IntOrNull("records", l.Records, l.read)
	o.IntOrNull("bytes", l.Bytes, !l.noBytes)
	id := ""
	if l.TopicID != (format.UUID{}) {
		id = l.TopicID.String()
	}
	o.StrOrNull("topic_id", id)
	o.Int("missing", l.Missing)
	o.Int("lost", l.Lost)
	o.Int("doubtful", l.Doubtful)
	o.Int("diverged", l.Diverged)
	o.OpenArray("damage")
	for _, d := range l.Damages {
		o.Open("")
		o.Str("file", d.File)
		o.IntOrNull("position", d.Pos, d.Offsets == nil)
		o.Close()
	}
	o.CloseArray()
	o.Close()
}

func appendBatch(o *render.Obj, name string, b *Batch) {
	if b == nil {
		o.Null(name)
		return
	}
	o.Open(name)
	o.Str("file", b.File)
	o.Int("position", b.Pos)
	o.Int("size", b.Size)
	o.Int("base_offset", b.BaseOffset)
	o.Int("last_offset", b.LastOffset)
	o.IntOrNull("count", int64(b.Count), b.Count >= 0)
	o.IntOrNull("partition_leader_epoch", int64(b.LeaderEpoch), b.LeaderEpoch >= 0)
	o.Time("max_timestamp", b.MaxTimestamp)
	o.IntOrNull("producer_id", b.ProducerID, b.ProducerID >= 0)
	o.IntOrNull("producer_epoch", int64(b.ProducerEpoch), b.ProducerID >= 0)
	o.IntOrNull("base_sequence", int64(b.BaseSequence), b.BaseSequence >= 0)
	o.Int("magic", int64(b.Magic))
	o.Str("codec", b.Codec.String())
	o.Close()
}

func errorTexts(errs []error) []string {
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return texts
}
