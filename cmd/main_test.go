package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"kseg/render"
)

// failingWriter takes a number of bytes and then fails.
type failingWriter struct {
	left int
	err  error
}

func (w *failingWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return w.left, w.err
	}
	w.left -= len(p)
	return len(p), nil
}

func TestMainWriteErrors(t *testing.T) {
	tests := []struct {
		name   string
		err    error
		code   int
		stderr string
	}{
		{"full disk", syscall.ENOSPC, 3, "kseg: the output is incomplete: no space left on device\n"},
		{"reader gone", syscall.EPIPE, 0, ""},
	}
	for _, test := range tests {
		var stderr strings.Builder
		code := Main([]string{"help", "exit-codes"}, strings.NewReader(""), &failingWriter{20, test.err}, &stderr)
		if code != test.code || stderr.String() != test.stderr {
			t.Errorf("%s: code %d, stderr %q; want %d, %q", test.name, code, stderr.String(), test.code, test.stderr)
		}
	}
}

func TestOutputKeepsItsFirstError(t *testing.T) {
	broken := errors.New("broken")
	out := &Output{w: &failingWriter{3, broken}}
	if _, err := out.Write([]byte("abcd")); err != nil {
		t.Fatalf("a buffered write failed: %v", err)
	}
	if err := out.Flush(); !errors.Is(err, broken) {
		t.Fatalf("Flush: %v", err)
	}
	if _, err := out.Write([]byte("e")); !errors.Is(err, broken) {
		t.Fatalf("Write after an error: %v", err)
	}
}

func TestOutputWritesEverythingOnce(t *testing.T) {
	var got strings.Builder
	out := &Output{w: &got}
	var want strings.Builder
	for i := range 300 {
		chunk := strings.Repeat(string(rune('a'+i%26)), i*i%70000)
		want.WriteString(chunk)
		if _, err := io.WriteString(out, chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Flush(); err != nil || got.String() != want.String() {
		t.Fatalf("%d bytes came out of %d, error %v", got.Len(), want.Len(), err)
	}
}

// TestStderrComesAfterStdout holds that a note stands after the data that was written before it.
func TestStderrComesAfterStdout(t *testing.T) {
	var both strings.Builder
	env := newEnv(nil, &both, &both)
	io.WriteString(env.Stdout, "data\n")
	env.notef("a note on %d bytes", 79)
	io.WriteString(env.Stdout, "more\n")
	code := env.finish(&cobra.Command{Use: "kseg"}, errFound, false)
	if want := "data\nkseg: a note on 79 bytes\nmore\n"; both.String() != want || code != 1 {
		t.Fatalf("got %q, code %d; want %q, code 1", both.String(), code, want)
	}
}

func TestProgressMakesRoomForNotes(t *testing.T) {
	var stderr strings.Builder
	at := time.UnixMilli(0)
	env := newEnv(nil, io.Discard, &stderr)
	env.Now = func() time.Time { return at }
	hidden := outputOptions{}
	if bar := hidden.progress(env, 100); bar != nil {
		t.Fatal("a bar without a terminal")
	}
	shown := outputOptions{Progress: render.WhenAlways}
	bar := shown.progress(env, 100)
	at = at.Add(2 * time.Second)
	bar.Add(50)
	drawn := stderr.Len()
	env.notef("a note")
	bar.Add(50)
	if got := stderr.String()[drawn:]; drawn == 0 || got != "\r\x1b[Kkseg: a note\n" {
		t.Fatalf("after the bar: %q", got)
	}
}

func TestPanicIsOneSentence(t *testing.T) {
	var stderr strings.Builder
	env := newEnv(nil, io.Discard, &stderr)
	code := codeOK
	func() {
		defer env.catch(&code)
		panic("index out of range [3]")
	}()
	if code != codeIncomplete || strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(),
		"index out of range") {
		t.Fatalf("code %d, stderr %q", code, stderr.String())
	}
}

func TestFlagValues(t *testing.T) {
	var size int64
	for text, want := range map[string]int64{
		"1": 1, "64K": 64 << 10, "256MiB": 256 << 20, "1g": 1 << 30, "2GB": 2 << 30, "5b": 5, "1TiB": 1 << 40,
		"": -1, "0": -1, "-1": -1, "K": -1, "1X": -1, "1KK": -1, "9223372036854775807K": -1, "1.5M": -1,
	} {
		err := (&byteSize{&size}).Set(text)
		if want < 0 && err == nil || want > 0 && (err != nil || size != want) {
			t.Errorf("size %q: %d, %v; want %d", text, size, err, want)
		}
	}
	size = 256 << 20
	if got := (&byteSize{&size}).String(); got != "256MiB" {
		t.Errorf("256 MiB is written %q", got)
	}

	var partitions []int32
	list := &numberList[int32]{&partitions}
	if err := list.Set("0,3"); err != nil || list.String() != "0,3" {
		t.Errorf("partitions 0,3: %v, %v", partitions, err)
	}
	if err := list.Set("7"); err != nil || list.String() != "0,3,7" {
		t.Errorf("a repeated flag: %v, %v", partitions, err)
	}
	for _, text := range []string{"", "x", "-1", "1,,2", "2147483648"} {
		if err := list.Set(text); err == nil {
			t.Errorf("partition %q was taken", text)
		}
	}
}

func TestClock(t *testing.T) {
	at := time.UnixMilli(1700000000000)
	env := &Env{Now: func() time.Time { return at }}
	for text, want := range map[string]int64{"": 1700000000000, "-2h": 1699992800000, "2023-11-14": 1699920000000,
		"5": 5} {
		clock := clockOptions{text: text}
		if got, err := clock.now(env); err != nil || got.UnixMilli() != want {
			t.Errorf("--now %q: %v, %v", text, got, err)
		}
	}
	bad := clockOptions{text: "soon"}
	if _, err := bad.now(env); exitCode(err) != codeUsage {
		t.Errorf("--now soon: %v", err)
	}
}

func TestNearest(t *testing.T) {
	commands := []string{"dump", "lookup", "verify", "retention", "explain", "version"}
	for typed, want := range map[string]string{
		"dmp": "dump", "lokup": "lookup", "vers": "version", "verfy": "verify", "retentoin": "retention", "ex": "explain",
		"cat": "", "x": "", "produce": "",
	} {
		if got := nearest(typed, commands); got != want {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
}

func TestTopicsHaveTexts(t *testing.T) {
	for _, topic := range Topics() {
		if len(topic.Text) < 100 {
			t.Errorf("the text of %s is %q", topic.Name, topic.Text)
		}
	}
}

func TestInterruptIsTheUsersWish(t *testing.T) {
	for _, test := range []struct {
		err         error
		interrupted bool
		code        int
		stderr      string
	}{
		{fmt.Errorf("reading x.log: %w", context.Canceled), true, codeInterrupted, "kseg: interrupted\n"},
		{errors.Join(errFound, context.Canceled), true, codeInterrupted, "kseg: interrupted\n"},
		{context.Canceled, false, codeIncomplete, "kseg: context canceled\n"},
		{nil, true, codeOK, ""}, // it came too late to stop anything
	} {
		var stderr strings.Builder
		env := newEnv(nil, io.Discard, &stderr)
		if code := env.finish(&cobra.Command{Use: "kseg"}, test.err, test.interrupted); code != test.code ||
			stderr.String() != test.stderr {
			t.Errorf("%v: code %d, stderr %q", test.err, code, stderr.String())
		}
	}
}
