//go:build oracle

// Command make drives real brokers to make directories as those below testdata/logdirs:
//
//	KSEG_ORACLE_LIB=DIR go run -tags oracle ./testdata/make [-o DIR] [-port N] [-list] [NAME...]
//
// What is made is told in scripts/NAME.txt; README.md says what their lines mean. It is run from the module's root.
package main

import (
	"bufio"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kseg/internal/fixture"
)

//go:embed scripts
var scripts embed.FS

func main() {
	list := flag.Bool("list", false, "print the names and what they are")
	out := flag.String("o", "made", "a directory to make them in")
	port := flag.Int("port", 22000, "the first of ten ports for the brokers")
	flag.Parse()
	names := flag.Args()
	if entries, err := scripts.ReadDir("scripts"); err == nil && len(names) == 0 {
		for _, e := range entries {
			names = append(names, strings.TrimSuffix(e.Name(), ".txt"))
		}
	}
	for _, name := range names {
		script, err := scripts.ReadFile("scripts/" + name + ".txt")
		if err == nil && *list {
			about, _, _ := strings.Cut(strings.TrimPrefix(string(script), "# "), "\n")
			fmt.Printf("%-12s %s\n", name, about)
			continue
		}
		if _, there := os.Stat(filepath.Join(*out, name)); err == nil && there == nil {
			err = errors.New("it is there already")
		}
		if err == nil {
			err = perform(filepath.Join(*out, name), *port, string(script))
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "make: %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

// outside stands for a test where the fixtures want one: what is fatal there ends the script.
type outside struct {
	testing.TB
	cleanups []func()
	dir      string
}

func (o *outside) Helper()                           {}
func (o *outside) Fatal(args ...any)                 { panic(errors.New(fmt.Sprint(args...))) }
func (o *outside) Fatalf(format string, args ...any) { panic(fmt.Errorf(format, args...)) }
func (o *outside) Skip(args ...any)                  { o.Fatal(args...) }
func (o *outside) Cleanup(f func())                  { o.cleanups = append(o.cleanups, f) }

func (o *outside) TempDir() string {
	dir, err := os.MkdirTemp(o.dir, "")
	if err != nil {
		o.Fatal(err)
	}
	return dir
}

func (o *outside) end() {
	for _, f := range slices.Backward(o.cleanups) {
		f()
	}
	_ = os.RemoveAll(o.dir)
}

// lab is a cluster and a client of it.
type lab struct {
	*outside
	out    string
	port   int
	java   fixture.Java
	nodes  []*node
	drive  io.WriteCloser
	driven *bufio.Scanner
}

// node is a broker, the controller, or both.
type node struct {
	id         int
	properties string
	logDirs    []string
	running    *fixture.Broker
}

// perform does what a script says, and writes what it copies below out.
func perform(out string, port int, script string) (err error) {
	dir, err := os.MkdirTemp("", "kseg-make")
	if err != nil {
		return err
	}
	l := &lab{outside: &outside{dir: dir}, out: out, port: port}
	line := 0
	defer l.end()
	defer func() {
		if failure, ok := recover().(error); ok {
			err = fmt.Errorf("line %d: %w", line, failure)
		}
	}()
	l.java = fixture.CompileJava(l, "testdata/make/Drive.java", "testdata/make/Golden.java", fixture.LoggerSource(l))
	for text := range strings.Lines(script) {
		line++
		if words := strings.Fields(text); len(words) > 0 && words[0] != "#" {
			l.do(words)
		}
	}
	return nil
}

func (l *lab) do(words []string) {
	switch words[0] {
	case "cluster":
		l.cluster(words[1], words[2:])
	case "start":
		l.each(words[1:], l.start)
	case "stop":
		l.each(words[1:], func(n *node) { l.stop(n, syscall.SIGTERM) })
	case "kill":
		l.each(words[1:], func(n *node) { l.stop(n, syscall.SIGKILL) })
	case "wait":
		ms, _ := strconv.Atoi(words[1])
		time.Sleep(time.Duration(ms) * time.Millisecond)
	case "said":
		l.each(words[1:2], func(n *node) { n.running.Output.Await(l, strings.Join(words[2:], " "), 1) })
	case "empty":
		l.each(words[1:], func(n *node) { l.format(n, true) })
	case "swap":
		l.each(words[1:], l.swap)
	case "copy":
		l.copy(words[1])
	case "golden":
		l.golden(words[1])
	default:
		l.tell(words)
	}
}

// each does something with the nodes of the given ids, or with all.
func (l *lab) each(ids []string, do func(*node)) {
	for _, n := range l.nodes {
		if len(ids) == 0 || slices.Contains(ids, strconv.Itoa(n.id)) {
			do(n)
		}
	}
}

// cluster makes one node, or a controller (100) and two brokers with two log directories each.
func (l *lab) cluster(size string, more []string) {
	for i := range more {
		more[i] = strings.ReplaceAll(more[i], "$metadata", filepath.Join(l.dir, "metadata"))
	}
	switch size {
	case "1":
		n := &node{id: 1, logDirs: []string{filepath.Join(l.dir, "b1"), filepath.Join(l.dir, "b1-second")}}
		n.properties = fixture.BrokerProperties(1, l.port, n.logDirs, more...)
		l.nodes = []*node{n}
	case "2":
		l.nodes = []*node{l.controller(more), l.broker(1, more), l.broker(2, more)}
	default:
		l.Fatalf("a cluster of %s", size)
	}
	l.each(nil, func(n *node) { l.format(n, false) })
}

func (l *lab) controller(more []string) *node {
	n := &node{id: 100, logDirs: []string{filepath.Join(l.dir, "controller")}}
	address := fmt.Sprintf("CONTROLLER://127.0.0.1:%d", l.port+1)
	n.properties = fixture.BrokerProperties(n.id, l.port, n.logDirs, append([]string{"process.roles=controller",
		"listeners=" + address, "advertised.listeners=" + address}, more...)...)
	return n
}

func (l *lab) broker(id int, more []string) *node {
	n := &node{id: id}
	for _, name := range []string{"b%d", "b%d-second"} {
		n.logDirs = append(n.logDirs, filepath.Join(l.dir, fmt.Sprintf(name, id)))
	}
	port := l.port + 2*id
	n.properties = fixture.BrokerProperties(id, port, n.logDirs, append([]string{"process.roles=broker",
		fmt.Sprintf("controller.quorum.voters=100@127.0.0.1:%d", l.port+1),
		fmt.Sprintf("listeners=PLAINTEXT://127.0.0.1:%d", port), "offsets.topic.replication.factor=2",
		"transaction.state.log.replication.factor=2", "broker.session.timeout.ms=3000",
		"broker.heartbeat.interval.ms=500", "replica.lag.time.max.ms=4000"}, more...)...)
	return n
}

// format prepares a node's log directories, anew if they are to be empty.
func (l *lab) format(n *node, empty bool) {
	for _, dir := range n.logDirs {
		if empty {
			l.must(os.RemoveAll(dir))
		}
	}
	file := filepath.Join(l.TempDir(), "server.properties")
	l.must(os.WriteFile(file, []byte(n.properties), 0o644))
	l.java.Run(l, nil, "kafka.tools.StorageTool", "format", "-t", "AABrc2VnAAAAAAAAAAAAAQ", "-c", file)
}

// swap exchanges the names of the two log directories of a node that stands still.
func (l *lab) swap(n *node) {
	a, b := n.logDirs[0], n.logDirs[1]
	l.must(os.Rename(a, a+".swap"))
	l.must(os.Rename(b, a))
	l.must(os.Rename(a+".swap", b))
}

func (l *lab) start(n *node) {
	n.running = fixture.StartBroker(l, l.java, n.properties)
	n.running.Output.Await(l, "Kafka Server started", 1)
}

func (l *lab) stop(n *node, end syscall.Signal) {
	if n.running != nil {
		n.running.Stop(end)
		n.running = nil
	}
}

// tell has the client do what words say; $N-second and $N are the log directories of node N.
func (l *lab) tell(words []string) {
	if l.drive == nil {
		l.client()
	}
	line := strings.Join(words, " ")
	for _, n := range l.nodes {
		line = strings.NewReplacer(fmt.Sprintf("$%d-second", n.id), n.logDirs[len(n.logDirs)-1],
			fmt.Sprintf("$%d", n.id), n.logDirs[0]).Replace(line)
	}
	fmt.Fprintln(os.Stderr, line)
	_, err := fmt.Fprintln(l.drive, line)
	l.must(err)
	for l.driven.Scan() {
		switch text := l.driven.Text(); {
		case text == "ok":
			return
		case strings.HasPrefix(text, "failed: "):
			l.Fatalf("%s: %s", line, text)
		}
	}
	l.Fatal("the client ended")
}

func (l *lab) client() {
	var servers []string
	for _, n := range l.nodes {
		port := l.port + 2*n.id
		if len(l.nodes) == 1 {
			port = l.port
		}
		if n.id != 100 {
			servers = append(servers, fmt.Sprintf("127.0.0.1:%d", port))
		}
	}
	cmd := l.java.Command("Drive", strings.Join(servers, ","))
	in, err := cmd.StdinPipe()
	l.must(err)
	out, err := cmd.StdoutPipe()
	l.must(err)
	l.must(cmd.Start())
	l.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	l.drive, l.driven = in, bufio.NewScanner(out)
}

// copy copies the log directories of all nodes at one moment: what runs is frozen meanwhile.
func (l *lab) copy(name string) {
	l.each(nil, func(n *node) {
		if n.running != nil {
			n.running.Freeze(l)
		}
	})
	defer l.each(nil, func(n *node) {
		if n.running != nil {
			n.running.Thaw()
		}
	})
	to := filepath.Join(l.out, name)
	l.must(os.MkdirAll(to, 0o755))
	l.each(nil, func(n *node) {
		for _, dir := range n.logDirs {
			if out, err := exec.Command("cp", "-a", dir, to).CombinedOutput(); err != nil {
				l.Fatalf("%v: %s", err, out)
			}
			_ = os.Remove(filepath.Join(to, filepath.Base(dir), ".lock"))
		}
	})
}

// golden asks DumpLogSegments for all files of a copy, into NAME.golden.
func (l *lab) golden(name string) {
	from := filepath.Join(l.out, name)
	out := l.java.Run(l, nil, "Golden", from, from+".golden")
	fmt.Fprintf(os.Stderr, "golden %s: %s", name, out)
}

func (l *lab) must(err error) {
	if err != nil {
		l.Fatal(err)
	}
}
