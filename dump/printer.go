package dump

import (
	"path/filepath"
	"strconv"
	"strings"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
	"kseg/schema"
)

// Decode chooses how records are shown.
type Decode struct {
	Auto  bool         // internal topics are recognised by their directory
	Topic schema.Topic // of every log otherwise; schema.None: keys and values as they are
}

// topic is what the records of f are decoded as.
func (d Decode) topic(f *logdir.File) schema.Topic {
	if !d.Auto {
		return d.Topic
	}
	if f.Kind() == format.KindCheckpoint {
		return schema.Metadata
	}
	if dir, ok := f.Dir(); ok {
		return schema.TopicFor(dir.String())
	}
	return schema.None
}

// newPrinter makes the printer of one file.
func (d *dumper) newPrinter(f *logdir.File, spill render.Spill) printer {
	p := &textPrinter{f: f, place: placeOf(f), opts: &d.opts, topic: d.opts.Decode.topic(f), decoder: d.newDecoder(),
		spill: spill}
	switch {
	case d.opts.Output == JSON:
		mode := d.opts.Payload
		if !d.opts.Data {
			mode = render.PayloadLen // a deep dump without payloads tells their sizes
		}
		return &jsonPrinter{textPrinter: p, mode: mode}
	case d.opts.Output == Table:
		return &tablePrinter{p, d}
	}
	return p
}

// newDecoder is nil where no record is shown.
func (d *dumper) newDecoder() *schema.Decoder {
	if !d.opts.Deep {
		return nil
	}
	decoder := schema.NewDecoder()
	if d.opts.Payload.LengthsOnly() {
		decoder.Redact()
	}
	return decoder
}

// safe escapes what was appended to dst after its first n bytes, unless text goes out as the real tool writes it: then
// no terminal shows it.
func (p *textPrinter) safe(dst []byte, n int) []byte {
	if p.opts.Payload == render.PayloadRaw {
		return dst
	}
	p.scratch = append(p.scratch[:0], dst[n:]...)
	return render.AppendEscaped(dst[:n], p.scratch)
}

// textPrinter prints the real tool's lines.
type textPrinter struct {
	f       *logdir.File
	opts    *Options
	topic   schema.Topic
	decoder *schema.Decoder
	scratch []byte
	place   place
	spill   render.Spill
}

// place is where JSON says that something is; the topic and the name of the directory are "" where that is not a
// partition's.
type place struct{ file, topic, partition string }

func placeOf(f *logdir.File) place {
	p := place{file: f.Rel}
	if dir, ok := f.Dir(); ok {
		p.topic, p.partition = dir.Topic, dir.String()
	}
	return p
}

func (p *place) append(o *render.Obj) {
	o.Str("file", p.file)
	o.StrOrNull("topic", p.topic)
	o.StrOrNull("partition", p.partition)
}

func (p *textPrinter) batch(dst []byte, b *format.Batch, _ uint32, valid bool) []byte {
	if p.opts.Quiet && valid {
		return dst
	}
	dst = appendBatchText(dst, b)
	if valid {
		return append(dst, "true\n"...)
	}
	return append(append(dst, p.opts.Theme.Bad("false")...), '\n')
}

func (p *textPrinter) record(dst []byte, b *format.Batch, r *format.Record) []byte {
	if p.opts.Quiet {
		return dst
	}
	if p.opts.SkipRecordMetadata {
		return append(p.bare(dst, b, r), '\n')
	}
	dst = p.appendRecordMeta(dst, b, r)
	switch {
	case b.Control():
		dst = p.appendControl(dst, r)
	case p.opts.Data:
		dst = p.data(dst, r)
	}
	return append(dst, '\n')
}

// bare is a record without its metadata: an empty line for a control record, for one with neither key nor value, and
// for all where keys and values are not printed.
func (p *textPrinter) bare(dst []byte, b *format.Batch, r *format.Record) []byte {
	if b.Control() || !p.opts.Data {
		return dst
	}
	from := len(dst)
	dst = p.data(append(dst, '|'), r)
	if len(dst) == from+1 {
		return dst[:from]
	}
	return dst
}

// appendControl appends what a control record means, or why it cannot be told.
func (p *textPrinter) appendControl(dst []byte, r *format.Record) []byte {
	n := len(dst)
	dst, err := p.decoder.AppendControlText(dst, r.Key, r.Value)
	if err != nil {
		return append(append(dst, " controlType: unreadable: "...), err.Error()...)
	}
	return p.safe(dst, n)
}

func (p *textPrinter) data(dst []byte, r *format.Record) []byte {
	if p.topic != schema.None && !p.opts.Payload.LengthsOnly() {
		n := len(dst)
		return p.safe(p.decoder.AppendText(dst, p.topic, r.Offset, r.Key, r.Value), n)
	}
	return p.appendPayload(dst, r)
}

// hole prints the real tool's line about a tail where its reading, too, ends without dying.
func (p *textPrinter) hole(dst []byte, h *format.Hole) []byte {
	if p.opts.MaxBytes != nil || h.Next >= 0 || h.Kind == format.Unreadable ||
		h.Kind == format.ZeroTail && h.Len > format.MagicPrefix {
		return dst
	}
	return foundInvalid(dst, p.opts.name(filepath.Base(p.f.Path)), h)
}

// jsonPrinter prints an object a line.
type jsonPrinter struct {
	*textPrinter
	key  []byte
	mode render.Payload
}

func (p *jsonPrinter) batch(dst []byte, b *format.Batch, computed uint32, valid bool) []byte {
	if p.opts.Quiet && valid {
		return dst
	}
	v2 := !b.Legacy()
	o := render.NewObj(dst, "batch")
	p.place.append(&o)
	o.Int("position", b.Pos)
	o.Int("size", b.Size())
	o.Int("magic", int64(b.Magic))
	o.IntOrNull("base_offset", b.BaseOffset, b.Count >= 0 || v2)
	o.Int("last_offset", b.LastOffset)
	o.IntOrNull("count", int64(b.Count), b.Count >= 0 || v2)
	o.IntOrNull("partition_leader_epoch", int64(b.LeaderEpoch), b.LeaderEpoch != -1)
	o.Int("crc", int64(b.CRC))
	o.Int("crc_computed", int64(computed))
	o.Bool("valid", valid)
	o.Str("codec", b.Codec().String())
	o.Str("timestamp_type", b.TimestampType().String())
	o.Time("base_timestamp", b.BaseTimestamp)
	o.Time("max_timestamp", b.MaxTimestamp)
	o.Time("delete_horizon_ms", horizon(b))
	o.IntOrNull("producer_id", b.ProducerID, b.ProducerID != -1)
	o.IntOrNull("producer_epoch", int64(b.ProducerEpoch), b.ProducerEpoch != -1)
	o.IntOrNull("base_sequence", int64(b.BaseSequence), b.BaseSequence != -1)
	o.IntOrNull("last_sequence", int64(b.LastSequence()), b.BaseSequence != -1)
	o.Bool("transactional", b.Transactional())
	o.Bool("control", b.Control())
	return o.Line()
}

// horizon is the delete horizon in epoch ms, -1 if there is none.
func horizon(b *format.Batch) int64 {
	if b.HasDeleteHorizon() {
		return b.BaseTimestamp
	}
	return -1
}

func (p *jsonPrinter) record(dst []byte, b *format.Batch, r *format.Record) []byte {
	if p.opts.Quiet {
		return dst
	}
	o := render.NewObj(dst, "record")
	o.Spill = p.spill
	p.place.append(&o)
	o.Int("position", b.Pos)
	o.Int("offset", r.Offset)
	o.Time("timestamp", r.Timestamp)
	o.IntOrNull("sequence", int64(r.Sequence), r.Sequence != -1)
	o.Bytes("key", r.Key, p.mode)
	o.Bytes("value", r.Value, p.mode)
	p.headers(&o, r)
	p.control(&o, b, r)
	p.decoded(&o, b, r)
	return o.Line()
}

func (p *jsonPrinter) headers(o *render.Obj, r *format.Record) {
	o.OpenArray("headers")
	headers := r.Headers
	for range r.HeaderCount {
		var key, value []byte
		key, value, headers = format.NextHeader(headers)
		o.Open("")
		o.Text("key", key, format.AppendJavaUTF8)
		o.Bytes("value", value, p.mode)
		o.Close()
	}
	o.CloseArray()
}

func (p *jsonPrinter) control(o *render.Obj, b *format.Batch, r *format.Record) {
	if !b.Control() {
		o.Null("control")
		return
	}
	p.scratch = p.decoder.AppendControlJSON(p.scratch[:0], r.Key, r.Value)
	p.safeRaw(o, "control")
}

func (p *jsonPrinter) decoded(o *render.Obj, b *format.Batch, r *format.Record) {
	if p.topic == schema.None || b.Control() || !p.opts.Data {
		o.Null("decoded")
		return
	}
	p.scratch = p.decoder.AppendJSON(p.scratch[:0], p.topic, r.Key, r.Value)
	p.safeRaw(o, "decoded")
}

// safeRaw adds the JSON in scratch.
func (p *jsonPrinter) safeRaw(o *render.Obj, name string) {
	p.key = render.AppendSafeJSON(p.key[:0], p.scratch)
	o.Raw(name, p.key)
}

func (p *jsonPrinter) hole(dst []byte, h *format.Hole) []byte {
	o := render.NewObj(dst, "unreadable")
	p.place.append(&o)
	o.Int("position", h.Pos)
	o.Int("length", h.Len)
	o.Str("what", h.Kind.String())
	o.Str("message", holeProblem(h).text)
	o.IntOrNull("next_position", h.Next, h.Next >= 0)
	o.IntOrNull("next_offset", h.NextOffset, h.Next >= 0)
	return o.Line()
}

// tablePrinter adds rows to the run's table.
type tablePrinter struct {
	*textPrinter
	d *dumper
}

func right(name string) render.Column { return render.Column{Name: name, Right: true} }

func left(name string) render.Column { return render.Column{Name: name} }

var batchColumns = []render.Column{left("file"), right("position"), right("size"), right("magic"), right("base"),
	right("last"), right("count"),
	right("epoch"), left("codec"), left("max timestamp"), right("producer"), right("sequence"), left("flags"), left("crc")}

var recordColumns = []render.Column{left("file"), right("position"), right("offset"), left("time"), right("sequence"),
	left("headers"), left("key"), left("value")}

func (t *tablePrinter) batch(dst []byte, b *format.Batch, _ uint32, valid bool) []byte {
	if t.opts.Deep || t.opts.Quiet && valid {
		return dst
	}
	crc := t.opts.Theme.Good("ok")
	if !valid {
		crc = t.opts.Theme.Bad("WRONG")
	}
	t.d.row("batch", batchColumns, render.Escaped(t.f.Rel), decimal(b.Pos), decimal(b.Size()), decimal(int64(b.Magic)),
		decimal(b.BaseOffset), decimal(b.LastOffset), absent(int64(b.Count)), absent(int64(b.LeaderEpoch)),
		b.Codec().String(), instant(b.MaxTimestamp), producer(b), absent(int64(b.BaseSequence)), flags(b), crc)
	return dst
}

func (t *tablePrinter) record(dst []byte, b *format.Batch, r *format.Record) []byte {
	if !t.opts.Quiet {
		t.d.row("record", recordColumns, render.Escaped(t.f.Rel), decimal(b.Pos), decimal(r.Offset), instant(r.Timestamp),
			absent(int64(r.Sequence)), headerCount(r), t.cell(r.Key, t.opts.KeyDecoder), t.value(b, r))
	}
	return dst
}

// value is the last column: a control record's meaning, an internal topic's record, or the value.
func (t *tablePrinter) value(b *format.Batch, r *format.Record) string {
	switch {
	case b.Control():
		return render.Escaped(strings.TrimSpace(string(t.appendControl(nil, r))))
	case t.topic != schema.None && t.opts.Data && !t.opts.Payload.LengthsOnly():
		return render.Escaped(strings.TrimSpace(string(t.decoder.AppendText(nil, t.topic, r.Offset, r.Key, r.Value))))
	}
	return t.cell(r.Value, t.opts.ValueDecoder)
}

func (t *tablePrinter) cell(b []byte, d Decoder) string {
	switch {
	case b == nil:
		return "null"
	case !t.opts.Data:
		return decimal(int64(len(b))) + " bytes"
	case t.opts.Payload.LengthsOnly():
		return string(d.appendText(nil, b, t.opts.Payload, nil))
	}
	payload := t.opts.Payload
	if payload == render.PayloadRaw {
		payload = render.PayloadAuto
	}
	beginning, rest := render.Brief(b)
	return string(d.appendText(nil, beginning, payload, nil)) + rest
}

func (t *tablePrinter) hole(dst []byte, _ *format.Hole) []byte { return dst }

func decimal(v int64) string { return strconv.FormatInt(v, 10) }

// absent leaves the cell of a -1 empty.
func absent(v int64) string {
	if v == -1 {
		return ""
	}
	return decimal(v)
}

func instant(timestampMs int64) string {
	if timestampMs == -1 {
		return ""
	}
	return render.Instant(timestampMs)
}

func producer(b *format.Batch) string {
	if b.ProducerID == -1 {
		return ""
	}
	return decimal(b.ProducerID) + "/" + decimal(int64(b.ProducerEpoch))
}

func flags(b *format.Batch) string {
	var all []string
	if b.Transactional() {
		all = append(all, "transactional")
	}
	if b.Control() {
		all = append(all, "control")
	}
	if b.HasDeleteHorizon() {
		all = append(all, "horizon")
	}
	if b.TimestampType() == format.LogAppendTime {
		all = append(all, "append time")
	}
	return strings.Join(all, ", ")
}

func headerCount(r *format.Record) string {
	if r.HeaderCount == 0 {
		return ""
	}
	return render.Plural(int64(r.HeaderCount), "header", "headers")
}
