package logdir

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"kseg/format"
)

// ForeignError says that an operand is not Kafka's, and what it looks like.
type ForeignError struct {
	Display string
	Looks   string // "gzip-compressed data"; "" if nothing is known
	Next    string // what to do, as a clause; "" if there is nothing to say
	Empty   bool   // it is a directory with nothing in it
}

// Error is one sentence.
func (e *ForeignError) Error() string {
	s := e.Display + ": not a file or directory of Kafka's"
	if e.Looks != "" {
		s += "; it looks like " + e.Looks
	}
	if e.Next != "" {
		s += "; " + e.Next
	}
	return s
}

// headBytes is how much of a file is looked at to tell what it is: enough for a batch's header and a tar's.
const headBytes = 512

// classifyFile judges a file given as an operand. Names of Kafka's are believed; a segment whose name gives no base
// offset and files of unknown kinds are looked into.
func (o *opener) classifyFile(f *File) error {
	if !f.mode.IsRegular() {
		_, _, err := f.open()
		return err
	}
	if o.opts.BaseOffset != nil {
		f.Name.Base, f.Name.HasBase = *o.opts.BaseOffset, true
		if f.Kind() == format.KindUnknown {
			f.Name.Kind = format.KindLog
		}
		return nil
	}
	f.takeRemoteBase()
	carved := f.Kind() == format.KindLog && !f.Name.HasBase
	if f.Kind() != format.KindUnknown && !carved {
		return nil
	}
	if looks := looksByName(f.Name.Raw); looks != "" {
		return &ForeignError{Display: f.Display, Looks: looks}
	}
	head, err := f.readHead(headBytes)
	if err != nil {
		return err
	}
	if base, ok := looksLikeSegment(head); ok && (carved || looksByMagic(head) == "") {
		if carved {
			return nil
		}
		return &ForeignError{Display: f.Display, Looks: "a segment by its first bytes, though not by its name",
			Next: fmt.Sprintf("add --base-offset N to read it as one (its first batch says %d)", base)}
	}
	looks := looksByContent(head)
	if strings.HasSuffix(f.Name.Raw, ".properties") {
		return &ForeignError{Display: f.Display, Looks: looks, Next: "--broker-config takes a server.properties"}
	}
	if carved && looks == "" {
		return nil // damage at the start of a carved segment is for the reader to report
	}
	return &ForeignError{Display: f.Display, Looks: looks}
}

// looksLikeSegment reports whether head begins with the header of a batch that could be healthy, and its offset.
func looksLikeSegment(head []byte) (base int64, ok bool) {
	if len(head) < 18 {
		return 0, false
	}
	base = int64(binary.BigEndian.Uint64(head))
	length := int32(binary.BigEndian.Uint32(head[8:]))
	magic := head[16]
	return base, base >= 0 && length >= 14 && (magic == 2 && length >= 49 || magic < 2)
}

// redpandaSegment is BASE-TERM-vN.log, with its indexes.
var redpandaSegment = regexp.MustCompile(`^\d+-\d+-v\d+\.(log|base_index|compaction_index)$`)

func looksByName(name string) string {
	if redpandaSegment.MatchString(name) {
		return "a segment of Redpanda, whose format is another one"
	}
	return ""
}

// magics are the first bytes of files that lie around where Kafka's do.
var magics = []struct{ magic, looks string }{
	{"\x1f\x8b", "gzip-compressed data, to be decompressed first"},
	{"\x28\xb5\x2f\xfd", "zstd-compressed data, to be decompressed first"},
	{"\x04\x22\x4d\x18", "lz4-compressed data, to be decompressed first"},
	{"\xff\x06\x00\x00sNaPpY", "snappy-compressed data, to be decompressed first"},
	{"\xfd7zXZ\x00", "xz-compressed data, to be decompressed first"},
	{"BZh", "bzip2-compressed data, to be decompressed first"},
	{"PK\x03\x04", "a zip or jar archive"},
	{"PAR1", "a Parquet file"},
	{"Obj\x01", "an Avro file"},
	{"ORC", "an ORC file"},
	{"SQLite format 3\x00", "an SQLite database"},
	{"\x7fELF", "a program"},
	{"\xca\xfe\xba\xbe", "a Java class"},
	{"\x89PNG", "a PNG image"},
	{"%PDF", "a PDF document"},
}

func looksByMagic(head []byte) string {
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.looks
		}
	}
	return ""
}

// looksByContent is "" if the first bytes tell nothing.
func looksByContent(head []byte) string {
	if len(head) == 0 {
		return "an empty file"
	}
	if looks := looksByMagic(head); looks != "" {
		return looks
	}
	if looksLikeTar(head) {
		return "a tar archive under the name of one of Kafka's files; give it another name"
	}
	if isText(head) {
		return "text: " + firstLine(head)
	}
	return ""
}

// isText accepts UTF-8 without control characters; the last rune may be cut.
func isText(head []byte) bool {
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		if r == utf8.RuneError && n == 1 {
			return !utf8.FullRune(head)
		}
		if r < ' ' && !strings.ContainsRune("\t\n\r\f\x1b", r) || r == 0x7f {
			return false
		}
		head = head[n:]
	}
	return true
}

// firstLine quotes the beginning of a text, so that its reader recognises it.
func firstLine(head []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(head), []byte("\n"))
	runes := []rune(strings.ToValidUTF8(string(line), ""))
	if len(runes) > 40 {
		runes = append(runes[:40], '…')
	}
	return fmt.Sprintf("%q", string(runes))
}

// foreignDir says what a directory holds that has nothing of Kafka's directly in it.
func foreignDir(arg string, entries []fs.DirEntry) error {
	e := &ForeignError{Display: arg}
	var names, hosts []string
	for _, entry := range entries {
		names = append(names, entry.Name())
		if looks := looksByName(entry.Name()); looks != "" {
			e.Looks = "a directory of Redpanda's, whose format is another one"
			return e
		}
		if sub := filepath.Join(arg, entry.Name()); isDir(arg, entry) && classOf(sub, lookDepth) != isForeign {
			hosts = append(hosts, sub)
		}
	}
	switch {
	case len(names) == 0:
		e.Looks, e.Empty, e.Next = "an empty directory", true, "is its volume mounted?"
	case len(hosts) > 0:
		e.Looks = "a directory that holds log directories"
		e.Next = "name those: " + joinNames(hosts)
	default:
		e.Looks = "a directory of other things: " + joinNames(names)
	}
	return e
}

func joinNames(names []string) string {
	if len(names) > maxListed {
		return strings.Join(names[:maxListed], " ") + fmt.Sprintf(" and %d more", len(names)-maxListed)
	}
	return strings.Join(names, " ")
}
