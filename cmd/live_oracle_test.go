//go:build oracle

package cmd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kseg/internal/fixture"
)

// loaded is a real broker under load, on a log directory of its own.
type loaded struct {
	t      *testing.T
	java   fixture.Java
	port   int
	data   string
	broker *fixture.Broker
	load   *exec.Cmd
	input  io.WriteCloser
	rounds int
}

func newLoaded(t *testing.T) *loaded {
	before := patience
	t.Cleanup(func() { patience = before })
	patience = 50 * time.Millisecond
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	l := &loaded{t: t, port: listener.Addr().(*net.TCPAddr).Port, data: filepath.Join(t.TempDir(), "data"),
		java: fixture.CompileJava(t, "oracle/Load.java", fixture.LoggerSource(t))}
	config := filepath.Join(t.TempDir(), "server.properties")
	if err := os.WriteFile(config, []byte(l.properties()), 0o644); err != nil {
		t.Fatal(err)
	}
	l.java.Run(t, nil, "kafka.tools.StorageTool", "format", "-t", "AABrc2VnAAAAAAAAAAAAAQ", "-c", config)
	return l
}

// properties make everything happen often.
func (l *loaded) properties() string {
	return fixture.BrokerProperties(1, l.port, []string{l.data}, "log.index.size.max.bytes=65536",
		"log.retention.check.interval.ms=500",
		"log.initial.task.delay.ms=500", "log.cleaner.backoff.ms=200", "log.segment.delete.delay.ms=1000",
		"replica.high.watermark.checkpoint.interval.ms=1000", "log.flush.offset.checkpoint.interval.ms=1000",
		"log.flush.start.offset.checkpoint.interval.ms=1000", "metadata.log.max.record.bytes.between.snapshots=20000")
}

// start starts the broker and its load, and returns what the broker said up to then.
func (l *loaded) start() string {
	l.broker = fixture.StartBroker(l.t, l.java, l.properties())
	said := l.broker.Output.Await(l.t, "Kafka Server started", 1)
	l.rounds++
	l.load = l.java.Command("Load", fmt.Sprintf("127.0.0.1:%d", l.port), strconv.Itoa(100*l.rounds))
	var err error
	if l.input, err = l.load.StdinPipe(); err != nil {
		l.t.Fatal(err)
	}
	tells, err := l.load.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := l.load.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = l.load.Process.Kill() })
	for lines := bufio.NewScanner(tells); lines.Scan() && lines.Text() != "loading"; {
		continue
	}
	go func() { _, _ = io.Copy(io.Discard, tells) }()
	return said
}

// kill ends both as a power cut would, but for what the kernel holds.
func (l *loaded) kill() {
	l.broker.Stop(syscall.SIGKILL)
	_ = l.load.Process.Kill()
	_ = l.load.Wait()
}

// number is that of an environment variable.
func number(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// findings are those of verify, split by whether they are worse than a note.
func findings(t *testing.T, output []byte) (worse, notes []string) {
	t.Helper()
	for line := range bytes.Lines(output) {
		var f struct {
			Kind, Severity, Code, File, Message string
			Partition                           *string
		}
		if err := json.Unmarshal(line, &f); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		text := f.Severity + " " + f.Code + " " + f.File + ": " + f.Message
		switch {
		case f.Kind != "finding":
		case f.Severity == "note":
			notes = append(notes, text)
		default:
			worse = append(worse, text)
		}
	}
	return worse, notes
}

// jsonError is why something was not done.
var jsonError = regexp.MustCompile(`"(error|not_read)":[["][^]].{0,300}`)

// TestOracleBesideBroker runs every verb again and again over the log directory of a real broker under load, for
// KSEG_ORACLE_SECONDS: nothing is found above a note, nothing crashes, and nothing is left unread for want of a second
// look.
func TestOracleBesideBroker(t *testing.T) {
	l := newLoaded(t)
	l.start()
	defer l.kill()
	until := time.Now().Add(time.Duration(number(t, "KSEG_ORACLE_SECONDS", 60)) * time.Second)
	runs, found, unread, codes := 0, 0, map[string]int{}, map[int]int{}
	lines := append(slices.Clone(BesideABroker), "lookup --offset 100 DIR/plain-gzip-0",
		"density --svg NEW.svg DIR/plain-gzip-0",
		"lookup --timestamp -2s DIR/txn-0", "explain DIR/recovery-point-offset-checkpoint",
		"explain --all -o json DIR/replication-offset-checkpoint", "explain DIR/txn-0/leader-epoch-checkpoint",
		"dump DIR/txn-0", "txn DIR/txn-0", "compaction --keys DIR/keys-0", "predict DIR/keys-0")
	for ; time.Now().Before(until); runs++ {
		line, fresh := lines[runs%len(lines)], t.TempDir()
		args := strings.Fields(strings.NewReplacer("DIR", l.data, "TWIN", l.data, "NEW", filepath.Join(fresh,
			"new")).Replace(line))
		var stdout, stderr bytes.Buffer
		code := Main(args, strings.NewReader(""), &stdout, &stderr)
		if text := stdout.String() + stderr.String(); strings.Contains(text, "internal error") ||
			strings.Contains(text, "goroutine ") {
			t.Errorf("%s: %s", line, &stderr)
		}
		if err := os.RemoveAll(fresh); err != nil {
			t.Fatal(err)
		}
		codes[code]++
		if code > codeFound {
			unread[line]++
			t.Logf("%s: code %d: %.600s %q", line, code, &stderr, jsonError.FindAllString(stdout.String(), -1))
			if !NothingThere.MatchString(stderr.String()) && args[0] != "explain" {
				t.Errorf("%s: code %d, though nothing keeps it from reading what is there", line, code)
			}
		}
		if args[0] != "verify" {
			continue
		}
		if code != codeOK {
			t.Errorf("%s: exit code %d: %s", line, code, &stderr)
		}
		if !strings.HasPrefix(line, "verify -o json") && !strings.HasPrefix(line, "verify --jobs 1 -o json") {
			continue
		}
		worse, _ := findings(t, stdout.Bytes())
		for _, text := range worse {
			t.Error(text)
			found++
		}
	}
	t.Logf("%d runs of %d command lines, %d findings above a note, codes %v, not all read: %v", runs, len(lines), found,
		codes, unread)
}

// TestOracleFrozen looks at copies of the log directory of a broker under load, each of one moment, KSEG_ORACLE_COPIES
// of them: nothing is damaged in them.
func TestOracleFrozen(t *testing.T) {
	l := newLoaded(t)
	l.start()
	defer l.kill()
	found, copies := 0, number(t, "KSEG_ORACLE_COPIES", 10)
	for range copies {
		time.Sleep(time.Duration(500+rand.IntN(2000)) * time.Millisecond)
		frozen := filepath.Join(t.TempDir(), "frozen")
		l.broker.Freeze(t)
		err := exec.Command("cp", "-a", l.data, frozen).Run()
		l.broker.Thaw()
		if err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		Main([]string{"verify", "-o", "json", frozen}, strings.NewReader(""), &stdout, &stderr)
		worse, _ := findings(t, stdout.Bytes())
		for _, text := range worse {
			if strings.HasPrefix(text, "damage ") {
				t.Error(text)
				found++
			}
		}
		if err := os.RemoveAll(frozen); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d copies, %d times damage", copies, found)
}

// truncation is what a broker says of a log that it cuts at its start.
var truncation = regexp.MustCompile(`LogLoader partition=(\S+?), dir=\S+\] Corruption found in segment`)

// TestOracleKills kills a broker under load at random moments, KSEG_ORACLE_KILLS times. What verify finds wrong in the
// logs is what the broker then cuts; of the room that it had kept free in a segment a note says so.
func TestOracleKills(t *testing.T) {
	l := newLoaded(t)
	l.start()
	cut, rounds := 0, number(t, "KSEG_ORACLE_KILLS", 3)
	for range rounds {
		time.Sleep(time.Duration(3000+rand.IntN(5000)) * time.Millisecond)
		l.kill()
		var stdout, stderr bytes.Buffer
		Main([]string{"verify", "-o", "json", l.data}, strings.NewReader(""), &stdout, &stderr)
		if strings.Contains(stderr.String(), "internal error") {
			t.Error(stderr.String())
		}
		worse, notes := findings(t, stdout.Bytes())
		var cuts []string
		for _, m := range truncation.FindAllStringSubmatch(l.start(), -1) {
			cuts = append(cuts, m[1])
		}
		cut += len(cuts)
		for _, text := range worse {
			if !slices.ContainsFunc(cuts, func(partition string) bool { return strings.Contains(text, " "+partition+"/") }) &&
				strings.Contains(text, ".log: ") {
				t.Errorf("the broker cut %v, and not where kseg says: %s", cuts, text)
			}
		}
		for _, partition := range cuts {
			said := func(text string) bool { return strings.Contains(text, " "+partition+"/") }
			if !slices.ContainsFunc(worse, said) && !slices.ContainsFunc(notes, func(text string) bool {
				return said(text) && strings.HasPrefix(text, "note zero-tail ")
			}) {
				t.Errorf("the broker cut %s, of which kseg says nothing", partition)
			}
		}
	}
	l.kill()
	t.Logf("%d kills, %d logs cut by the broker", rounds, cut)
}
