package format_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kseg/format"
)

// javaText escapes s as the recorded answers do: everything but printable ASCII, by UTF-16 unit.
func javaText(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r > ' ' && r < 0x7f && r != '\\' && r != '|':
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// javaMap writes keys and values as a TreeMap does.
func javaMap(m map[string]string) string {
	var pairs []string
	for _, k := range slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return strings.Compare(javaText(a), javaText(b))
	}) {
		pairs = append(pairs, javaText(k)+"="+m[k])
	}
	return "{" + strings.Join(pairs, ", ") + "}"
}

// textDecoders are our answers in the form in which those of Kafka 4.4.0's own readers were recorded.
var textDecoders = map[string]func(raw []byte) (string, error){
	"offsets": func(raw []byte) (string, error) {
		c, err := format.DecodeOffsetCheckpoint(raw)
		m := map[string]string{}
		for _, e := range c.Entries {
			m[e.Topic+"-"+strconv.Itoa(int(e.Partition))] = strconv.FormatInt(e.Offset, 10)
		}
		return javaMap(m), err
	},
	"epochs": func(raw []byte) (string, error) {
		c, err := format.DecodeLeaderEpochs(raw)
		var b strings.Builder
		for _, e := range c.Loaded() {
			fmt.Fprintf(&b, "%d:%d,", e.Epoch, e.StartOffset)
		}
		return b.String(), err
	},
	"partmeta": func(raw []byte) (string, error) {
		m, err := format.DecodePartitionMetadata(raw)
		return fmt.Sprintf("%d %s", m.Version, m.TopicID), err
	},
	"props": func(raw []byte) (string, error) {
		props, err := format.DecodeProperties(raw)
		m := map[string]string{}
		for _, p := range props {
			m[p.Key] = javaText(p.Value)
		}
		return javaMap(m), err
	},
	"meta": func(raw []byte) (string, error) {
		m, err := format.DecodeMetaProperties(raw)
		s := fmt.Sprintf("MetaProperties(version=%d", m.Version)
		if _, ok := m.Get("cluster.id"); ok {
			s += ", clusterId=" + m.ClusterID
		}
		if m.HasNodeID {
			s += fmt.Sprintf(", nodeId=%d", m.NodeID)
		}
		if m.HasDirectoryID {
			s += ", directoryId=" + m.DirectoryID.String()
		}
		return javaText(s + ")"), err
	},
	"quorum": func(raw []byte) (string, error) {
		_, err := format.DecodeQuorumState(raw)
		return "", err
	},
}

// recorded reads testdata/statefiles.tsv.gz: kind, content as a quoted Go string, and what Kafka 4.4.0's own reader
// makes of a file with that content.
func recorded(t testing.TB) [][3]string {
	t.Helper()
	f, err := os.Open("testdata/statefiles.tsv.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][3]string
	for line := range strings.Lines(string(data)) {
		cols := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		content, err := strconv.Unquote(cols[1])
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		rows = append(rows, [3]string{cols[0], content, cols[2]})
	}
	return rows
}

func TestTextFilesAsKafkaReadsThem(t *testing.T) {
	count := map[string]int{}
	for _, row := range recorded(t) {
		kind, content, want := row[0], row[1], row[2]
		count[kind]++
		text, err := textDecoders[kind]([]byte(content))
		got := "ok " + text
		if err != nil {
			got = "throws " + string(format.Throws(err))
		}
		if got != want {
			t.Errorf("%s %q:\ngot  %s (%v)\nwant %s", kind, content, got, err, want)
		}
		if err != nil {
			checkPlace(t, []byte(content), err)
		}
	}
	for kind := range textDecoders {
		if count[kind] < 25 {
			t.Errorf("only %d rows of %s", count[kind], kind)
		}
	}
}

// checkPlace demands that the error of a text decoder lies in the file, on the line it says.
func checkPlace(t testing.TB, raw []byte, err error) {
	t.Helper()
	var state *format.StateError
	if !errors.As(err, &state) || state.Throws == "" || !errors.As(err, new(*format.Error)) {
		t.Fatalf("%q: %#v is no StateError", raw, err)
	}
	pos := state.Cause.Pos
	if pos < 0 || pos > int64(len(raw)) {
		t.Errorf("%q: position %d of %v outside of the file", raw, pos, err)
		return
	}
	lines := 1 + bytes.Count(bytes.ReplaceAll(raw[:pos], []byte("\r\n"), []byte("\n")), []byte("\n")) +
		bytes.Count(bytes.ReplaceAll(raw[:pos], []byte("\r\n"), nil), []byte("\r"))
	if state.Line < 1 || state.Line > lines+1 {
		t.Errorf("%q: line %d for position %d of %v", raw, state.Line, pos, err)
	}
}

// TestBadEscapeIsFound: in a continued line too, the error points at the backslash.
func TestBadEscapeIsFound(t *testing.T) {
	for _, raw := range []string{"a=\\u12", "x=y\na=b\\\n  c\\\r\n\\u00zz=5", "\\u", "a\\u0041b=\\\n\\t\\u-041"} {
		_, err := format.DecodeProperties([]byte(raw))
		if pos := errorPos(err); pos < 0 || raw[pos:pos+2] != `\u` || raw[pos:min(len(raw), int(pos)+6)] == `\u0041` {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

// FuzzTextFiles: whatever the bytes, an error has a place in them, and entries have places of their own.
func FuzzTextFiles(f *testing.F) {
	for _, row := range recorded(f) {
		f.Add([]byte(row[1]))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, decode := range textDecoders {
			if _, err := decode(raw); err != nil {
				checkPlace(t, raw, err)
			}
		}
		last := int64(-1)
		place := func(l format.Line) {
			if l.Pos <= last || l.Len < 0 || l.Pos+l.Len > int64(len(raw)) || l.Number < 1 {
				t.Errorf("%q: line %+v after %d", raw, l, last)
			}
			last = l.Pos
		}
		c, _ := format.DecodeOffsetCheckpoint(raw)
		for _, e := range c.Entries {
			place(e.Line)
		}
		last = -1
		props, _ := format.DecodeProperties(raw)
		for _, p := range props {
			place(p.Line)
		}
		if c, err := format.DecodeCleanShutdown(raw); err != nil && c.BrokerEpoch != -1 {
			t.Errorf("%q: %+v with %v", raw, c, err)
		}
	})
}
