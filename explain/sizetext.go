package explain

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"kseg/format"
	"kseg/render"
)

// mostListed is how many different batches the text lists.
const mostListed = 12

// WriteSize prints a prediction as text: the sum first, then the batches and why each was closed, then what a record
// costs.
func WriteSize(out io.Writer, theme render.Theme, o *SizeOptions, batches []PredictedBatch) error {
	_, bytes, count := Total(batches)
	about, codec := "", ""
	if o.Codec != format.CodecNone {
		about, codec = "about ", " with "+o.Codec.String()
	}
	dst := []byte(theme.Strong(fmt.Sprintf("%s: %s%s on disk%s, %s a record", records(o.Records), about, bytesOf(bytes),
		codec, perRecord(bytes, o.Records))))
	dst = append(dst, '\n')
	dst = append(dst, o.shape()...)
	dst = append(dst, "\n\n"...)
	columns := render.NewColumns("rrrw").Fit(theme)
	columns.Row(theme.Dim("batches"), theme.Dim("records"), theme.Dim("bytes"), theme.Dim("closed because"))
	for i, b := range batches {
		if i == mostListed && len(batches) > mostListed+1 {
			columns.Row("…", "", "", fmt.Sprintf("and %s more", render.Count(count-timesOf(batches[:i]))))
			break
		}
		columns.Row(render.Count(b.Times), render.Count(b.Records), render.Count(b.Bytes), b.why(o))
	}
	dst = columns.Append(dst, "  ")
	dst = append(dst, '\n')
	dst = append(dst, o.costs()...)
	_, err := out.Write(dst)
	return err
}

func timesOf(batches []PredictedBatch) (n int64) {
	for _, b := range batches {
		n += b.Times
	}
	return n
}

func records(n int64) string { return render.Plural(n, "record", "records") }

// perRecord is a number of bytes a record with two decimals.
func perRecord(bytes, records int64) string {
	if records == 0 {
		return "no bytes"
	}
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(float64(bytes)/float64(records), 'f', 2, 64), ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return whole + " bytes"
	}
	return render.Count(n) + "." + fraction + " bytes"
}

// shape words what each record has.
func (o *SizeOptions) shape() string {
	part := func(name string, n int64) string {
		if n < 0 {
			return "null " + name
		}
		return name + " of " + bytesOf(n)
	}
	parts := []string{part("key", o.KeyBytes), part("value", o.ValueBytes)}
	for _, h := range o.Headers {
		parts = append(parts, fmt.Sprintf("header %d:%s", h[0], nullable(h[1])))
	}
	parts = append(parts, fmt.Sprintf("timestamps %d ms apart", o.TimestampStepMs), fmt.Sprintf("batch.size %s",
		render.Count(o.BatchSize)))
	text := strings.Join(parts, ", ")
	if o.Codec != format.CodecNone {
		text += "\nAll records are taken to be equal, which compresses best; for your own, give a FILE. Codecs of other " +
			"libraries differ by a few percent."
	}
	return text
}

func nullable(n int64) string {
	if n < 0 {
		return "null"
	}
	return strconv.FormatInt(n, 10)
}

// why says why a batch was closed.
func (b *PredictedBatch) why(o *SizeOptions) string {
	if b.Reason == ClosedEnd {
		return "no more records: the batch is sent when linger.ms is over"
	}
	limit := render.Count(b.Limit) + ", batch.size"
	if b.Limit != o.BatchSize {
		limit = fmt.Sprintf("%s, what the producer reserves for the first record of a batch: %d + %d + %s",
			render.Count(b.Limit), format.BatchHeaderSize, format.MaxRecordOverhead, render.Count(o.content()))
	}
	if o.Codec != format.CodecNone {
		return fmt.Sprintf("estimated at %s; with the next record of %s it would be over %s", render.Count(b.Filled),
			render.Count(b.Next), limit)
	}
	return fmt.Sprintf("%s + %s for the next record > %s", render.Count(b.Filled), render.Count(b.Next), limit)
}

// costs explains the bytes of one record.
func (o *SizeOptions) costs() string {
	first := format.RecordSize(0, 0, o.content())
	payload := max(o.KeyBytes, 0) + max(o.ValueBytes, 0)
	for _, h := range o.Headers {
		payload += h[0] + max(h[1], 0)
	}
	text := fmt.Sprintf("A batch has a header of %d bytes. A record has %s: %s of key, value and headers, %d of "+
		"lengths and deltas", format.BatchHeaderSize, bytesOf(first), render.Count(payload), first-payload)
	if o.Codec != format.CodecNone || first <= (o.BatchSize-format.BatchHeaderSize)/65 { // a batch may hold so many
		later, since := format.RecordSize(64*o.TimestampStepMs, 64, o.content()), "since"
		if later > first+1 {
			since = "since among other things"
		}
		text += fmt.Sprintf(";\nthe 65th of a batch has %s, %s its offset delta, 64, no longer fits into one byte",
			render.Count(later), since)
	}
	return text + ".\n"
}

// WriteReplay prints what the records of a file would take, as a table of batch sizes and codecs.
func WriteReplay(out io.Writer, theme render.Theme, name string, r *Replay) error {
	total := records(r.Records)
	if r.Records < 0 {
		total = "records of an old format"
	}
	dst := []byte(theme.Strong(fmt.Sprintf("%s: %s, %s as stored in %s (%s)", render.Escaped(name), total,
		bytesOf(r.StoredBytes), render.Plural(r.StoredBatches, "batch", "batches"), codecNames(r.StoredCodecs))))
	dst = append(dst, "\nThe same records, sent again by a producer that fills its batches:\n\n"...)
	codecs := codecsOf(r.Cells)
	columns := render.NewColumns("rr"+strings.Repeat("r", len(codecs))).Fit(theme, 1)
	head := []string{theme.Dim("batch.size"), theme.Dim("batches")}
	for _, c := range codecs {
		head = append(head, theme.Dim(c.String()))
	}
	columns.Head(head...)
	for i := 0; i < len(r.Cells); i += len(codecs) {
		row := []string{render.Count(r.Cells[i].BatchSize), render.Count(r.Cells[i].Count)}
		for _, c := range r.Cells[i : i+len(codecs)] {
			text := render.Count(c.Bytes)
			if plain := r.Cells[i]; plain.Codec == format.CodecNone && c.Bytes > plain.Bytes {
				text = theme.Bad(text)
			}
			row = append(row, text)
		}
		columns.Row(row...)
	}
	dst = columns.Append(dst, "  ")
	dst = append(dst, '\n')
	for _, note := range r.notes() {
		dst = append(append(dst, note...), '\n')
	}
	_, err := out.Write(dst)
	return err
}

// codecsOf are the codecs of the first row.
func codecsOf(cells []*Replayed) []format.Codec {
	var codecs []format.Codec
	for _, c := range cells {
		if slices.Contains(codecs, c.Codec) {
			break
		}
		codecs = append(codecs, c.Codec)
	}
	return codecs
}

func codecNames(set map[format.Codec]bool) string {
	var names []string
	for c := format.CodecNone; c <= format.CodecZstd; c++ {
		if set[c] {
			names = append(names, c.String())
		}
	}
	return strings.Join(names, ", ")
}

// notes say how far the numbers hold.
func (r *Replay) notes() []string {
	var notes []string
	if r.Sampled {
		notes = append(notes, fmt.Sprintf("Sampled: %s were read; the numbers are scaled up.", records(r.ReadRecords)))
	} else if len(r.Cells) > 0 && r.Cells[0].Codec == format.CodecNone {
		notes = append(notes, "The column none is exact. A compressed column is about what a producer makes: libraries "+
			"differ by a few percent.")
	}
	if r.Unreadable > 0 {
		notes = append(notes, fmt.Sprintf("%s could not be read to the end, and count with what could.",
			render.Plural(r.Unreadable, "batch", "batches")))
	}
	for i, c := range r.Cells {
		if i > 0 && r.Cells[i-1].BatchSize == c.BatchSize && c.Codec == format.CodecGzip &&
			r.Cells[i-1].Codec == format.CodecNone && c.Bytes > r.Cells[i-1].Bytes {
			notes = append(notes, fmt.Sprintf("With batch.size %s gzip makes the log bigger: each batch is compressed alone, "+
				"and has too little in it to pay for gzip's header and trailer.", render.Count(c.BatchSize)))
			break
		}
	}
	return notes
}

// Prediction is what a size_prediction object says.
type Prediction struct {
	File      string // whose records they are; "" if none
	BatchSize int64
	Codec     format.Codec
	About     bool  // compressed or sampled, so not exact
	Records   int64 // −1 if not known
	Bytes     int64
	Batches   []PredictedBatch // none if sampled
}

// mostBatches is how many batches a JSON object lists.
const mostBatches = 1_000_000

// ErrTooMany means that a prediction has more batches than can be listed.
var ErrTooMany = errors.New("too many batches to list")

// AppendSizeJSON appends a prediction as a line of JSON. The error wraps ErrTooMany.
func AppendSizeJSON(dst []byte, p *Prediction) ([]byte, error) {
	if n := timesOf(p.Batches); n > mostBatches {
		return dst, fmt.Errorf("%w: %s, and the most is %s; the text form counts equal ones", ErrTooMany, render.Count(n),
			render.Count(mostBatches))
	}
	o := render.NewObj(dst, "size_prediction")
	o.StrOrNull("file", p.File)
	o.Int("batch_size", p.BatchSize)
	o.Str("codec", p.Codec.String())
	o.Bool("about", p.About)
	o.IntOrNull("records", p.Records, p.Records >= 0)
	o.Int("bytes", p.Bytes)
	if p.Records > 0 {
		o.Float("bytes_per_record", float64(p.Bytes)/float64(p.Records), 3)
	} else {
		o.Null("bytes_per_record")
	}
	o.OpenArray("batches")
	for _, b := range p.Batches {
		for range b.Times {
			o.Open("")
			o.Int("records", b.Records)
			o.Int("size", b.Bytes)
			o.Close()
		}
	}
	o.CloseArray()
	return o.Line(), nil
}

// Predictions are the cells of a replay as objects.
func (r *Replay) Predictions(file string) []Prediction {
	var all []Prediction
	for _, c := range r.Cells {
		p := Prediction{File: file, BatchSize: c.BatchSize, Codec: c.Codec, About: r.Sampled || c.Codec != format.CodecNone,
			Records: r.Records, Bytes: c.Bytes, Batches: c.Batches}
		if r.Sampled {
			p.Batches = nil
		}
		all = append(all, p)
	}
	return all
}
