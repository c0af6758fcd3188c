package explain

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/render"
	"kseg/schema"
)

// coverSink holds that fields follow one another, and keeps them if asked to.
type coverSink struct {
	t        testing.TB
	name     string
	data     []byte
	pos      int64 // in the file
	plainPos int64
	batch    int64
	keep     bool
	fields   []field
}

func (s *coverSink) title(string, []string) error { return nil }
func (s *coverSink) plain(string) error           { return nil }
func (s *coverSink) missing(string) error         { return nil }

func (s *coverSink) field(f *field) error {
	pos := &s.pos
	if f.Plain {
		if f.Batch.Pos != s.batch {
			s.batch, s.plainPos = f.Batch.Pos, 0
		}
		pos = &s.plainPos
	} else if !bytes.Equal(f.Bytes, s.data[f.Start:f.End]) {
		s.t.Fatalf("%s: %s has other bytes than the file", s.name, f.Path)
	}
	if f.Start != *pos || f.End <= f.Start || int64(len(f.Bytes)) != f.End-f.Start {
		s.t.Fatalf("%s: %s from %d to %d, after %d", s.name, f.Path, f.Start, f.End, *pos)
	}
	if f.json == nil {
		f.json = f.payload.AppendJSON(nil, f.Bytes, nil)
	}
	if !json.Valid(f.json) {
		s.t.Fatalf("%s: %s has the value %s", s.name, f.Path, f.json)
	}
	*pos = f.End
	if s.keep {
		s.fields = append(s.fields, *f)
		s.fields[len(s.fields)-1].Bytes = bytes.Clone(f.Bytes)
	}
	return nil
}

// cover shows all of data as the content of f and returns the fields if they are to be kept.
func cover(t testing.TB, f *logdir.File, data []byte, keep bool) []field {
	t.Helper()
	s := &coverSink{t: t, name: f.Display, data: data, batch: -1, keep: keep}
	e := &explainer{ctx: context.Background(), opts: &Options{All: true, MaxBatchBytes: 16 << 20}, file: f, data: data,
		base: f.Name.Base, sink: s,
		notes: io.Discard, around: &surroundings{}, topic: topicOf(f), rr: format.NewRecordReader(16<<20, nil),
		schema: schema.NewDecoder()}
	show := e.entries
	if f.Kind().Batches() {
		show = e.segment
	}
	if err := show(); err != nil && len(data) > 0 {
		t.Fatalf("%s: %v", f.Display, err)
	}
	if s.pos != int64(len(data)) {
		t.Fatalf("%s: the fields end at %d of %d", f.Display, s.pos, len(data))
	}
	return s.fields
}

// fileAlone writes data under a name of testdata, in a directory of the same name, without the files beside it.
func fileAlone(t testing.TB, name string, data []byte) *logdir.File {
	t.Helper()
	dir := filepath.Join(t.TempDir(), path.Base(path.Dir(name)))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, path.Base(name))
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	set, err := logdir.Open([]string{file}, logdir.Options{})
	if err != nil || set.Operands[0].File == nil {
		t.Fatalf("%s: %v", name, err)
	}
	return set.Operands[0].File
}

// TestFieldsCoverRealFiles: with decoded keys and values, too, every byte of every real file is in one field.
func TestFieldsCoverRealFiles(t *testing.T) {
	files := 0
	for i, name := range fixture.Files(t, "") {
		data := fixture.Data(t, name)
		if len(data) == 0 || len(data) > 40_000 && !strings.Contains(name, "__") || !fixture.Sampled(i, 4) {
			continue
		}
		files++
		cover(t, fileAlone(t, name, data), data, false)
	}
	if files < fixture.Times(100, 500) {
		t.Errorf("only %d files", files)
	}
}

// TestEveryKind: each field of a real file of any kind is told.
func TestEveryKind(t *testing.T) {
	fixture.EachKind(t, func(kind format.Kind, name string, data []byte) {
		for _, f := range cover(t, fileAlone(t, name, data), data, true) {
			if f.Batch == nil && f.meaning == "" {
				t.Errorf("%s: %s has no meaning", kind, f.Path)
			}
		}
	})
}

// TestFlippedBitsInDecodedRecords: whatever bit of an internal topic is flipped, the cover is exact, and the fields
// that end before it stay as they are.
func TestFlippedBitsInDecodedRecords(t *testing.T) {
	seen := map[schema.Topic]bool{}
	for _, name := range append(fixture.Files(t, ".log"), fixture.Files(t, ".checkpoint")...) {
		data := fixture.Data(t, name)
		if len(data) == 0 || len(data) > 800 {
			continue
		}
		f := fileAlone(t, name, data)
		if topicOf(f) == schema.None || seen[topicOf(f)] {
			continue
		}
		seen[topicOf(f)] = true
		before := cover(t, f, data, true)
		for i := range data {
			for bit := range 8 {
				if !fixture.Sampled(8*i+bit, 16) {
					continue
				}
				data[i] ^= 1 << bit
				after := cover(t, f, data, true)
				for j, old := range before {
					if old.End <= int64(i) && (j >= len(after) || !sameField(old, after[j])) {
						t.Fatalf("%s, byte %d bit %d: %s (%d–%d, %s) is gone", name, i, bit, old.Path, old.Start, old.End, old.json)
					}
				}
				data[i] ^= 1 << bit
			}
		}
	}
	if len(seen) < 2 {
		t.Errorf("only the topics %v", seen)
	}
}

func sameField(a, b field) bool {
	return a.Path == b.Path && a.Start == b.Start && a.End == b.End && bytes.Equal(a.Bytes, b.Bytes) &&
		string(a.json) == string(b.json)
}

// runFile runs explain over a file of its own in the given form.
func runFile(t testing.TB, name string, data []byte, opts Options) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut strings.Builder
	if opts.MaxBatchBytes == 0 {
		opts.MaxBatchBytes = 16 << 20
	}
	err = Run(context.Background(), fileAlone(t, name, data), opts, &out, &errOut)
	return out.String(), errOut.String(), err
}

// TestJSONConcatenatesToTheFile: the objects hold the schema, their bytes are the file's, and those of a batch's
// decompressed records begin at 0 and leave nothing out.
func TestJSONConcatenatesToTheFile(t *testing.T) {
	rr := format.NewRecordReader(16<<20, nil)
	checked := map[format.Kind]int{}
	for _, name := range fixture.Files(t, "") {
		data := fixture.Data(t, name)
		kind := format.ParseFileName(path.Base(name)).Kind
		if len(data) == 0 || len(data) > 5000 || checked[kind] >= fixture.Times(2, 4) {
			continue
		}
		checked[kind]++
		text, _, err := runFile(t, name, data, Options{Output: JSON, All: true})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		fixture.CheckJSON(t, []byte(text))
		file, plain := buffers(t, text)
		if !bytes.Equal(file, data) {
			t.Errorf("%s: the fields do not concatenate to the file", name)
		}
		for pos, got := range plain {
			b, err := format.DecodeBatch(data, pos)
			if err != nil {
				t.Fatal(err)
			}
			if rr.Reset(&b); !bytes.Equal(got, rr.Plain()) {
				t.Errorf("%s: the decompressed fields of the batch at %d do not concatenate to its records", name, pos)
			}
		}
	}
}

// buffers concatenates the bytes of field objects: those of the file, and those of each batch's decompressed records.
func buffers(t testing.TB, lines string) (file []byte, plain map[int64][]byte) {
	t.Helper()
	plain = map[int64][]byte{}
	for line := range strings.Lines(lines) {
		var f struct {
			Buffer, Bytes, Path string
			Start, End          int64
			Position            *int64 `json:"batch_position"`
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		b, err := hex.DecodeString(f.Bytes)
		if err != nil {
			t.Fatalf("%s: %v", f.Path, err)
		}
		to := &file
		if f.Buffer == "decompressed" {
			p := plain[*f.Position]
			to = &p
		}
		if int64(len(*to)) != f.Start || f.End-f.Start != int64(len(b)) {
			t.Fatalf("%s from %d to %d, after %d", f.Path, f.Start, f.End, len(*to))
		}
		*to = append(*to, b...)
		if f.Buffer == "decompressed" {
			plain[*f.Position] = *to
		}
	}
	return file, plain
}

// TestRedactedLeaksNothing: under --payload redacted no four bytes of a key, value, header value or decoded record are
// in the output, as text or as digits, also where the file is damaged.
func TestRedactedLeaksNothing(t *testing.T) {
	secret := "Quetzalcoatl-7781"
	header := format.AppendHeader(nil, []byte("h"), []byte(secret))
	body := format.AppendRecord(nil, &format.Record{Key: []byte(secret), Value: []byte(secret + secret), Headers: header,
		HeaderCount: 1}, 0, 0)
	plain := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Key: []byte(secret), Value: []byte(secret)},
		{Offset: 1, Value: []byte(secret)}}})
	withHeader := append(bytes.Clone(plain[:61]), body...)
	withHeader[11] = byte(len(withHeader) - 12)
	withHeader[60] = 1
	files := map[string][]byte{"plain": plain, "headers": withHeader, "torn": plain[:len(plain)-9],
		"damage": append(bytes.Clone(plain), []byte("zz"+secret+secret)...)}
	for i := 61; i < len(plain); i++ {
		broken := bytes.Clone(plain)
		broken[i] ^= 0x40
		files[fmt.Sprint("flip ", i)] = broken
	}
	for name, data := range files {
		for _, output := range []Output{Text, JSON, Table} {
			for _, dir := range []string{"orders-0", "__consumer_offsets-0", "__cluster_metadata-0", "__transaction_state-3"} {
				text, notes, err := runFile(t, dir+"/00000000000000000000.log", data, Options{Output: output, All: true,
					Payload: render.PayloadRedacted})
				if err != nil {
					t.Fatal(err)
				}
				checkNoSecret(t, name+" in "+dir, text+notes, secret)
			}
		}
	}
}

func checkNoSecret(t *testing.T, what, text, secret string) {
	t.Helper()
	packed := strings.ReplaceAll(text, " ", "")
	for i := range len(secret) - 4 {
		part := secret[i : i+4]
		if strings.Contains(text, part) || strings.Contains(packed, hex.EncodeToString([]byte(part))) {
			t.Errorf("%s: %q is in\n%s", what, part, text)
			return
		}
	}
}

// TestNoControlCharacters: no byte of a file reaches the output raw.
func TestNoControlCharacters(t *testing.T) {
	nasty := "\x1b[31m\x07\r\u202e\u009b\xff\x00"
	data := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Key: []byte(nasty), Value: []byte(nasty)}}})
	files := map[string][]byte{"x-0/00000000000000000000.log": data, "meta.properties": []byte("a=" + nasty + "\n"),
		"cleaner-offset-checkpoint": []byte("0\n1\n" + nasty + " 0 1\n"), "x-0/quorum-state": []byte(`{"` + nasty)}
	for name, data := range files {
		for _, p := range []render.Payload{render.PayloadDefault, render.PayloadRaw, render.PayloadUTF8} {
			for _, output := range []Output{Text, JSON, Table} {
				text, notes, err := runFile(t, name, data, Options{Output: output, All: true, Payload: p})
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range text + notes {
					if r < 0x20 && r != '\n' || r >= 0x7f && r < 0xa0 || r == 0x202e || r == 0xfffd {
						t.Fatalf("%s: %q in %q", name, r, text)
					}
				}
			}
		}
	}
}

// TestLongText: a long value is shown as the text it is, though it is cut in the middle of a character.
func TestLongText(t *testing.T) {
	for shift := range 4 {
		value := strings.Repeat("x", shift) + strings.Repeat("日本語", 100)
		data := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Value: []byte(value)}}})
		text, _, err := runFile(t, "x-0/00000000000000000000.log", data, Options{Payload: render.PayloadAuto})
		if err != nil || !strings.Contains(text, "日本語日本語") {
			t.Errorf("shift %d: %v\n%s", shift, err, text)
		}
	}
}

// TestPage: a page is whole, refers to nothing outside of it, and shows what a file holds as text.
func TestPage(t *testing.T) {
	evil := "</td><script>alert(1)</script>&<!--"
	data := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Key: []byte(evil), Value: []byte(evil)}}})
	data = append(data, data[:30]...)
	page, err := Page(context.Background(), fileAlone(t, "x-0/00000000000000000000.log", data),
		Options{All: true, MaxBatchBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, bad := range []string{"<script", "http:", "https:", "src=", "\x00"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q is in the page", bad)
		}
	}
	for _, want := range []string{"<!DOCTYPE html>", "&lt;script&gt;", ">damage<", "<svg", "baseOffset", "</html>\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	for _, tag := range []string{"table", "tr", "svg", "title", "h1", "h2", "p"} {
		opened := strings.Count(text, "<"+tag+">") + strings.Count(text, "<"+tag+" ")
		if closed := strings.Count(text, "</"+tag+">"); opened != closed || opened == 0 && tag != "p" {
			t.Errorf("%d <%s> and %d </%s>", opened, tag, closed, tag)
		}
	}
}

// TestPageOfAnEmptyFile: there is a page, and it says so.
func TestPageOfAnEmptyFile(t *testing.T) {
	for _, name := range []string{"x-0/00000000000000000000.log", "x-0/00000000000000000000.index",
		"x-0/00000000000000000000.timeindex", "x-0/00000000000000000000.txnindex", "x-0/00000000000000000007.snapshot",
		"x-0/leader-epoch-checkpoint", "meta.properties"} {
		page, err := Page(context.Background(), fileAlone(t, name, nil), Options{MaxBatchBytes: 1 << 20})
		if err != nil || !strings.Contains(string(page), "no byte to explain") || !strings.HasSuffix(string(page),
			"</html>\n") {
			t.Errorf("%s: %v\n%s", name, err, page)
		}
	}
}

// TestPageOfALargeSegment: the map stays small, and too many fields are refused.
func TestPageOfALargeSegment(t *testing.T) {
	const name = "4.4.0/tiny-batches/tiny-0/00000000000000000000.log"
	f := fileAlone(t, name, fixture.Data(t, name))
	page, err := Page(context.Background(), f, Options{MaxBatchBytes: 1 << 20})
	if err != nil || len(page) > 400_000 {
		t.Errorf("a page of %d bytes, %v", len(page), err)
	}
	if _, err := Page(context.Background(), f, Options{All: true, MaxBatchBytes: 1 << 20}); !errors.Is(err, ErrTooLong) {
		t.Errorf("all of it: %v", err)
	}
}

// FuzzExplain: any bytes in any file are shown whole, also as records of internal topics.
func FuzzExplain(f *testing.F) {
	names := []string{"__consumer_offsets-0/00000000000000000000.log", "__transaction_state-0/00000000000000000000.log",
		"__share_group_state-0/00000000000000000000.log", "__remote_log_metadata-0/00000000000000000000.log",
		"x-0/00000000000000000000-0000000000.checkpoint", "x-0/00000000000000000000.snapshot",
		"x-0/00000000000000000000.timeindex", "x-0/leader-epoch-checkpoint", "meta.properties"}
	for _, name := range fixture.Files(f, "") {
		if data := fixture.Data(f, name); len(data) > 0 && len(data) < 1000 {
			f.Add(uint8(len(data)), data)
		}
	}
	var files []*logdir.File
	for _, name := range names {
		files = append(files, fileAlone(f, name, []byte("0\n0\n")))
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		if len(data) > 0 && len(data) < 1<<14 {
			cover(t, files[int(which)%len(files)], data, false)
		}
	})
}
