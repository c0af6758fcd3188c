package verify

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kseg/format"
	"kseg/internal/fixture"
)

const (
	plainBase = "4.4.0/damage-base/plain/orders-0"
	txnBase   = "4.4.0/damage-base/txn/orders-0"
)

// edited changes the batches of a segment for which pick is true, and makes their checksums anew.
func edited(t *testing.T, dir, file string, pick func(b *format.Batch) bool, edit func(raw []byte)) {
	t.Helper()
	name := filepath.Join(dir, file)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for s := format.NewScanner(data, 0, -1); s.Next(); {
		if b := s.Batch(); b != nil && pick(b) {
			edit(b.Raw)
			binary.BigEndian.PutUint32(b.Raw[17:], crc32.Checksum(b.Raw[21:], crc32.MakeTable(crc32.Castagnoli)))
			n++
		}
	}
	if n == 0 {
		t.Fatal("no batch was edited")
	}
	writeFile(t, name, data)
}

func offsetIs(base int64) func(*format.Batch) bool {
	return func(b *format.Batch) bool { return b.BaseOffset == base }
}

// recordAt is the position of record n in an uncompressed batch.
func recordAt(t *testing.T, raw []byte, n int) int {
	t.Helper()
	b, err := format.DecodeBatch(raw, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := format.NewRecordReader(1<<20, nil)
	r.Reset(&b)
	var rec format.Record
	for range n + 1 {
		if !r.Next(&rec) {
			t.Fatal(r.Err())
		}
	}
	return int(rec.Pos)
}

// setTimes moves a batch in time: its base timestamp, and the largest by as much.
func setTimes(to int64) func([]byte) {
	return func(raw []byte) {
		base, most := int64(be64(raw[27:])), int64(be64(raw[35:]))
		putInt64(raw[27:], to)
		putInt64(raw[35:], to+most-base)
	}
}

// wrapper is a gzip message of magic 1 with one inner message, whose checksum is wrong.
func wrapper(t *testing.T) []byte {
	t.Helper()
	message := func(attributes byte, value []byte) []byte {
		m := make([]byte, 34, 34+len(value))
		m[16], m[17] = 1, attributes
		putInt64(m[18:], 1700000000000)
		binary.BigEndian.PutUint32(m[26:], 1<<32-1)
		binary.BigEndian.PutUint32(m[30:], uint32(len(value)))
		m = append(m, value...)
		binary.BigEndian.PutUint32(m[8:], uint32(len(m)-12))
		binary.BigEndian.PutUint32(m[12:], crc32.ChecksumIEEE(m[16:]))
		return m
	}
	inner := message(0, []byte("value"))
	inner[12] ^= 1
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(inner); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return message(1, packed.Bytes())
}

// crafted is damage that takes more than a recipe: most of it with checksums that hold.
var crafted = []struct {
	code, base string
	edit       func(t *testing.T, dir string)
}{
	{"batch-header", plainBase, func(t *testing.T, dir string) {
		edited(t, dir, "00000000000000000032.log", offsetIs(44), func(raw []byte) { putInt64(raw[43:], -7) })
	}},
	{"batch-count", plainBase, func(t *testing.T, dir string) {
		edited(t, dir, "00000000000000000032.log", offsetIs(44), func(raw []byte) { raw[60] = 0 })
	}},
	{"batch-attributes", plainBase, func(t *testing.T, dir string) {
		edited(t, dir, "00000000000000000032.log", offsetIs(44), func(raw []byte) { raw[21] = 1 })
	}},
	{"record-offset", plainBase, func(t *testing.T, dir string) {
		edited(t, dir, "00000000000000000032.log", offsetIs(44), func(raw []byte) {
			// length (2 bytes), attributes, timestamp delta, offset delta
			raw[recordAt(t, raw, 1)+4] = 0
		})
	}},
	{"record-crc-mismatch", "4.4.0/hello/hello-0", func(t *testing.T, dir string) {
		writeFile(t, filepath.Join(dir, "00000000000000000000.log"), wrapper(t))
	}},
	{"control-record", txnBase, func(t *testing.T, dir string) {
		edited(t, dir, "00000000000000000000.log", offsetIs(64), func(raw []byte) { raw[recordAt(t, raw, 0)+8] = 9 })
	}},
	{"timestamp-unit", plainBase, func(t *testing.T, dir string) {
		edited(t, dir, "00000000000000000032.log", offsetIs(44), setTimes(1_700_000_000))
	}},
	{"timestamp-future", plainBase, func(t *testing.T, dir string) {
		edited(t, dir, "00000000000000000032.log", offsetIs(44),
			setTimes(time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()))
	}},
	{"offset-overflow", plainBase, func(t *testing.T, dir string) {
		// The snapshot would prove that it is the batch that is wrong.
		apply(t, dir, "remove 00000000000000000120.snapshot")
		edited(t, dir, "00000000000000000096.log", offsetIs(116), func(raw []byte) { putInt64(raw, 96+1<<31-3) })
	}},
	{"transaction-state", txnBase, func(t *testing.T, dir string) {
		edited(t, dir, "00000000000000000000.log", func(b *format.Batch) bool {
			return b.BaseOffset > 8 && b.BaseOffset < 60 && b.Transactional() && !b.Control() && b.ProducerID == 1
		}, func(raw []byte) { raw[22] &^= 0x10 })
	}},
	{"marker-without-transaction", txnBase, func(t *testing.T, dir string) {
		edited(t, dir, "00000000000000000000.log", func(b *format.Batch) bool {
			return b.Transactional() && !b.Control() && b.ProducerID == 3
		}, func(raw []byte) { raw[22] &^= 0x10 })
	}},
	// The ledger's last producer was left hanging.
	{"open-transaction", txnBase, func(*testing.T, string) {}},
	{"index-differs-from-rebuild", plainBase, func(t *testing.T, dir string) {
		apply(t, dir, "cut 00000000000000000032.index 16+8")
	}},
	{"timeindex-differs-from-rebuild", plainBase, func(t *testing.T, dir string) {
		apply(t, dir, "cut 00000000000000000032.timeindex 24+12")
	}},
	{"txnindex-stray-bytes", txnBase, func(t *testing.T, dir string) {
		apply(t, dir, "append 00000000000000000000.txnindex 0001020304")
	}},
}

func apply(t *testing.T, dir, steps string) {
	t.Helper()
	if err := fixture.ApplyTo(dir, steps); err != nil {
		t.Fatal(err)
	}
}

func TestCraftedDamage(t *testing.T) {
	for _, c := range crafted {
		t.Run(c.code, func(t *testing.T) {
			t.Parallel()
			dir := fixture.Dir(t, c.base)
			c.edit(t, dir)
			found, _ := runOn(t, Options{Level: Records}, dir)
			var got []string
			for i := range found {
				if found[i].Code == c.code {
					return
				}
				got = append(got, line(&found[i]))
			}
			t.Errorf("not found; there is\n\t%s", strings.Join(got, "\n\t"))
		})
	}
}

func TestBatchTooLarge(t *testing.T) {
	found, _ := runOn(t, Options{Level: Headers, MaxMessageBytes: 78}, fixture.Dir(t, "4.4.0/hello/hello-0"))
	if len(found) != 1 || found[0].Code != "batch-too-large" {
		t.Errorf("limit 78: %v, want one finding about the batch of 79 bytes", found)
	}
	if found, _ = runOn(t, Options{Level: Headers, MaxMessageBytes: 79},
		fixture.Dir(t, "4.4.0/hello/hello-0")); len(found) > 0 {
		t.Errorf("limit 79: %v", found)
	}
}

// A code is complete with a section in docs/findings.md that says what it means, what a broker does and what to do, and
// with damage that triggers it.
func TestChecksComplete(t *testing.T) {
	text, err := os.ReadFile("../docs/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	triggered := map[string]bool{"batch-too-large": true, "changed-while-read": true}
	for _, lines := range expectations(t) {
		for _, text := range lines {
			triggered[strings.Fields(text)[1]] = true
		}
	}
	for _, c := range crafted {
		triggered[c.code] = true
	}
	for _, c := range stateDamage {
		for _, text := range c.want {
			triggered[strings.Fields(text)[1]] = true
		}
	}
	seen := map[string]bool{}
	for _, c := range Codes() {
		if seen[c.Name] {
			t.Errorf("%s is declared twice", c.Name)
		}
		seen[c.Name] = true
		_, section, ok := strings.Cut(string(text), "\n## "+c.Name+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if paragraphs := strings.Split(strings.TrimSpace(section), "\n\n"); !ok || len(paragraphs) != 3 {
			t.Errorf("%s: docs/findings.md has %d paragraphs about it, want 3: what it means, what a broker does, what to do",
				c.Name, len(paragraphs))
		}
		if !triggered[c.Name] {
			t.Errorf("%s: no recipe of testdata/damage and no crafted damage triggers it", c.Name)
		}
	}
	for line := range strings.Lines(string(text)) {
		if code, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok && !seen[code] {
			t.Errorf("docs/findings.md has a section about %s, which is no code", code)
		}
	}
}
