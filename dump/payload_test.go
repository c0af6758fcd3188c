package dump

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kseg/internal/fixture"
	"kseg/render"
)

// writeSegment writes a segment of one batch into a folder of its own and returns its path.
func writeSegment(t *testing.T, partition string, b fixture.Batch) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), partition)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "00000000000000000000.log")
	if err := os.WriteFile(path, fixture.AppendBatch(nil, b), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// offsetCommit is a commit of the group, with a metadata string.
func offsetCommit(group, metadata string) fixture.Record {
	key := append([]byte{0, 1, 0, byte(len(group))}, group...)
	key = append(key, 0, 1, 't', 0, 0, 0, 0)
	value := append([]byte{0, 3, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, byte(len(metadata))}, metadata...)
	return fixture.Record{Key: key, Value: append(value, make([]byte, 8)...)}
}

// What acts on a terminal is escaped wherever a record comes from: header keys, decoded records, names of files.
func TestNothingThatActsOnATerminalIsShownRaw(t *testing.T) {
	const evil = "a\x1b[31m\u009b31mb\x7f\u202ec\n"
	user := writeSegment(t, "user-\x1b[31m-0", fixture.Batch{Records: []fixture.Record{{Header: evil,
		Value: []byte(evil)}}})
	commits := writeSegment(t, "__consumer_offsets-0", fixture.Batch{Records: []fixture.Record{offsetCommit(evil, evil)}})
	acting := regexp.MustCompile("[\x00-\x09\x0b-\x1f\x7f\u0080-\u009f\u202e]")
	for _, output := range []Output{Text, JSON, Table} {
		for _, payload := range []render.Payload{render.PayloadAuto, render.PayloadUTF8, render.PayloadHex,
			render.PayloadRedacted} {
			o := defaults()
			o.Output, o.Deep, o.Data, o.Payload = output, true, true, payload
			stdout, stderr, _ := dumped(t, o, user, commits)
			if at := acting.FindStringIndex(stdout + stderr); at != nil {
				t.Errorf("output %d, payload %v: byte %d of\n%q", output, payload, at[0], stdout+stderr)
			}
			if output != Text && strings.Count(stdout, "\n") > 6 {
				t.Errorf("output %d, payload %v: a line end of the data in\n%q", output, payload, stdout)
			}
		}
	}
}

// A redacted dump tells sizes, and of decoded records types and versions.
func TestRedactedTellsNothing(t *testing.T) {
	user := writeSegment(t, "user-0", fixture.Batch{Records: []fixture.Record{{Key: []byte("secret"),
		Value: []byte("secret"), Header: "h"}}})
	commits := writeSegment(t, "__consumer_offsets-0",
		fixture.Batch{Records: []fixture.Record{offsetCommit("secret", "secret")}})
	voter := []byte("\x00\x00\x02\x00\x00\x00\x01" + strings.Repeat("\x01", 16) +
		"\x02\x02L\x07secret\x00\x01\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00")
	voters := writeSegment(t, "__cluster_metadata-0", fixture.Batch{Attributes: 0x20,
		Records: []fixture.Record{{Key: []byte{0, 0, 0, 6}, Value: voter}}})
	for _, output := range []Output{Text, JSON, Table} {
		o := defaults()
		o.Output, o.Deep, o.Data = output, true, true
		if open, stderr, _ := dumped(t, o, user, commits, voters); strings.Count(open, "secret") < 5 || stderr != "" {
			t.Fatalf("the records do not say what is to be redacted: %s%s", open, stderr)
		}
		o.Payload = render.PayloadRedacted
		stdout, _, _ := dumped(t, o, user, commits, voters)
		if strings.Contains(stdout, "secret") {
			t.Errorf("output %d:\n%s", output, stdout)
		}
		for _, want := range map[Output][]string{
			Text: {"key: 6 bytes payload: 6 bytes", `KRaftVoters {"version":0}`},
			JSON: {`"key":{"length":6}`, `"decoded":{"key":{"type":1,"name":"OffsetCommit","data":null},` +
				`"value":{"version":3,"data":null},"error":null}`,
				`"control":{"type":"KRAFT_VOTERS","id":6,"version":0,"data":null,"error":null}`},
			Table: {"6 bytes"},
		}[output] {
			if !strings.Contains(stdout, want) {
				t.Errorf("output %d: no %s in\n%s", output, want, stdout)
			}
		}
	}
}

// A deep dump without payloads has, in JSON, the names of one with them.
func TestDeepJSONWithoutPayloads(t *testing.T) {
	o := defaults()
	o.Output, o.Deep = JSON, true
	stdout, _, _ := dumped(t, o, writeSegment(t, "user-0",
		fixture.Batch{Records: []fixture.Record{{Value: []byte("some"), Header: "h"}}}))
	fixture.CheckJSON(t, []byte(stdout))
	if want := `"key":null,"value":{"length":4},"headers":[{"key":"h","value":null}],"control":null,` +
		`"decoded":null}`; !strings.Contains(stdout, want) {
		t.Errorf("no %s in %s", want, stdout)
	}
}
