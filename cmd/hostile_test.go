package cmd

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"kseg/format"
	"kseg/internal/fixture"
)

// hostile acts on a terminal, and on a page, if it gets there as it is.
const hostile = "\x1b]0;pwned\x07\x1b[31m\u202e\u009b2J\x7f<img src=x onerror=alert(1)>\"'&"

// hostileName is hostile as far as the name of a file can be.
var hostileName = strings.ReplaceAll(hostile, "/", "")

// hostileDir is a log directory in which all names and payloads are hostile.
func hostileDir(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "logs"+hostileName)
	write := func(name, content string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	evil := []byte(hostile)
	text := func(s string) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(len(s))), s...) }
	log := func(key, value []byte) string {
		return string(fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{
			{TimestampMs: 1_700_000_000_000, Key: key, Value: value, Header: hostile}}}))
	}
	commit := append(append(append([]byte{0, 1}, text(hostile)...), text(hostile)...), 0, 0, 0, 0)
	committed := append(append(append([]byte{0, 3}, make([]byte, 12)...), text(hostile)...), make([]byte, 8)...)
	segment := format.SegmentFileName(0, format.KindLog)
	for _, topic := range []string{"plain-0", "t" + hostileName + "-0"} {
		write(filepath.Join(topic, segment), log(evil, evil)+log(evil, evil)+"torn"+hostile)
		write(filepath.Join(topic, "evil"+hostileName), "?")
		write(filepath.Join(topic, "evil"+hostileName+".log"), "?")
		write(filepath.Join(topic, "evil"+hostileName+"dir", "inner"), "?")
		write(filepath.Join(topic, "leader-epoch-checkpoint"), "0\n1\n"+hostile+" 0\n")
		write(filepath.Join(topic, "partition.metadata"), "version: 0\ntopic_id: "+hostile+"\n")
	}
	write(filepath.Join("__consumer_offsets-0", segment), log(commit, committed))
	write("meta.properties", "version=1\ncluster.id="+hostile+"\nnode.id=1\n"+strings.ReplaceAll(hostile, "=", "")+"="+
		hostile+"\n")
	write("bootstrap.checkpoint", hostile)
	write("replication-offset-checkpoint", "0\n1\nno"+strings.ReplaceAll(hostile, " ", "")+" 0 7\n")
	write("recovery-point-offset-checkpoint", "0\n1\n"+hostile+"\n")
	write("evil"+hostileName, "?")
	write(filepath.Join("evil"+hostileName+"dir", "inner"), "?")
	return dir
}

// onTerminal runs kseg as on a terminal, without colours.
func onTerminal(args ...string) string {
	var out bytes.Buffer
	env := newEnv(strings.NewReader(""), &out, &out)
	env.StdoutTerminal, env.StderrTerminal = true, true
	env.Getenv = func(name string) string { return map[string]string{"NO_COLOR": "1"}[name] }
	env.Stdout = &Output{w: &out, through: true}
	env.Stderr = &stderrWriter{w: &out, before: env.Stdout}
	root := newRootCommand(env)
	root.SetArgs(args)
	ran, err := root.ExecuteContextC(context.Background())
	env.finish(ran, err, false)
	return out.String()
}

// raw is the first character of an output that acts instead of being seen, with what is around it; "" if there is none.
func raw(out string) string {
	for i, r := range out {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0x202e || r == utf8.RuneError {
			return strings.ToValidUTF8(out[max(0, i-60):min(len(out), i+20)], "?")
		}
	}
	return ""
}

// Whatever names and payloads are like, nothing of them acts on the terminal, or in a page or report.
func TestHostileNamesAndPayloads(t *testing.T) {
	dir := hostileDir(t)
	segment := filepath.Join(dir, "plain-0", format.SegmentFileName(0, format.KindLog))
	var runs [][]string
	for _, verb := range [][]string{{"dump", "--records"}, {"dump"}, {"verify"}, {"lookup", "--offset", "0"},
		{"lookup", "--offset", "0", "--records"}, {"lookup", "--sweep"}, {"density"}, {"retention"},
		{"retention", "--plan"}, {"ls"}, {"ls", "--stats"}, {"groups"}, {"metadata"}, {"compaction"}} {
		for _, form := range []string{"text", "table", "json"} {
			runs = append(runs, append(append([]string{}, verb...), "-o", form, dir))
		}
	}
	runs = append(runs, []string{"verify", "-o", "junit", dir}, []string{"explain", segment}, []string{"explain", segment,
		"--html", filepath.Join(t.TempDir(), "page.html")},
		[]string{"explain", filepath.Join(dir, "meta.properties")},
		[]string{"explain", filepath.Join(dir, "replication-offset-checkpoint")},
		[]string{"dump", "-o", "table", filepath.Join(dir, "meta.properties")},
		[]string{"dump", filepath.Join(dir, "meta.properties")},
		[]string{"dump", "--records", "--payload", "auto", segment}, []string{"dump", "--kafka-compat", "--print-data-log",
			"--files", segment},
		[]string{"lookup", "--html", filepath.Join(t.TempDir(), "page.html"), "--offset", "0", dir}, []string{"compare", dir,
			dir}, []string{"dump", dir + hostile}, []string{"verify", "--ignore", hostile, dir},
		[]string{"verify", "--topic", hostile, dir}, []string{hostile}, []string{"dump", "--" + hostile, dir},
		[]string{"verify", "--rebuild", filepath.Join(t.TempDir(), "out"+hostileName), dir})
	for _, args := range runs {
		out := onTerminal(args...)
		if at := raw(out); at != "" {
			t.Errorf("%.60q: %q", args, at)
		}
		page := strings.Contains(strings.Join(args, " "), "html") || strings.Contains(strings.Join(args, " "), "junit")
		if !page {
			continue
		}
		var stdout bytes.Buffer // what a terminal shows beside the page is none
		Main(args, strings.NewReader(""), &stdout, io.Discard)
		if strings.Contains(stdout.String(), "<img") {
			t.Errorf("%.60q: the page has an element of the data", args)
		}
	}
}
