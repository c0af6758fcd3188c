package cmd

import (
	"bufio"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"kseg/internal/fixture"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata/script")

// statusFile names, for kseg as a test runs it, where to write what the system says of the process at its end.
const statusFile = "KSEG_TEST_STATUS"

// TestMain lets the test binary be kseg: the transcripts find it under that name in their PATH.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "kseg" {
		patience = 0 // all that the transcripts look at was written just now
		code := Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
		if name := os.Getenv(statusFile); name != "" {
			status, _ := os.ReadFile("/proc/self/status")
			_ = os.WriteFile(name, status, 0o644) // a test that finds none fails
		}
		os.Exit(code)
	}
	if dir := os.Getenv(restless); dir != "" {
		keepChanging(dir)
	}
	if dir := os.Getenv("KSEG_TEST_BROKER_DIR"); dir != "" {
		w := fixture.NewAtWork(dir, 1)
		for steps := bufio.NewReader(os.Stdin); ; w.Step() {
			if _, err := steps.ReadByte(); err != nil {
				os.Exit(0)
			}
		}
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	patience = 0
	debug.SetGCPercent(800)                                // thousands of short commands beside what the tests hold
	time.Local = time.FixedZone("elsewhere", -3*3600-1800) // every time is to be printed in UTC
	for _, name := range []string{"COLUMNS", "NO_COLOR", "KAFKA_LOG_DIRS"} {
		os.Unsetenv(name) // what a test wants it sets itself
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	bin, err := os.MkdirTemp("", "kseg-bin")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(bin)
	if err := os.Symlink(self, filepath.Join(bin, "kseg")); err != nil {
		panic(err)
	}
	os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return m.Run()
}

// TestScripts runs the transcripts of testdata/script; -update rewrites what their cmp commands expect. Beside the
// commands of testscript they have
//
//	[!] kseg ARGS...       run kseg (with !: it must not end with 0), and hold that it changed nothing outside out/
//	code N [COMMAND...]    the exit code of COMMAND, or of the last kseg
//	copy CASE [DEST]       copy testdata/logdirs/CASE to DEST (default: its last element)
//	damage RECIPE [DEST]   copy the partition of a recipe of testdata/damage, changed as it says
//	step DIR STEP...       change files of DIR by one more step in the language of the recipes
//	ungzip FILE            expand FILE.gz
//	jsonschema FILE        hold every line against docs/json-schema.json (stdout is the last output)
//
// A terminal is had by "ttyin FILE", then exec sh -c 'kseg ... >/dev/tty', then ttyout. Files that a verb is asked to
// write belong into out/.
func TestScripts(t *testing.T) {
	dir, err := filepath.Abs(filepath.Join("..", "testdata", "script"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                dir,
		UpdateScripts:      *update,
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("TZ", "America/St_Johns")
			env.Setenv("LANG", "C.UTF-8")
			env.Setenv("ESC", "\x1b")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"kseg":       scriptKseg,
			"code":       scriptCode,
			"copy":       scriptCopy,
			"damage":     scriptDamage,
			"step":       scriptStep,
			"ungzip":     scriptUngzip,
			"jsonschema": scriptJSONSchema,
		},
	})
}

// codeVariable keeps the last exit code, in the environment because that is a script's own.
const codeVariable = "KSEG_LAST_CODE"

func scriptKseg(ts *testscript.TestScript, neg bool, args []string) {
	if code := runKseg(ts, args); neg == (code == 0) {
		ts.Fatalf("kseg ended with code %d", code)
	}
}

// runKseg returns the exit code, and fails the script if anything is not as it was before.
func runKseg(ts *testscript.TestScript, args []string) int {
	before := treeState(ts)
	code := mainIn(ts, args)
	ts.Setenv(codeVariable, strconv.Itoa(code))
	for name, state := range treeState(ts) {
		if before[name] != state {
			ts.Fatalf("kseg has changed or made %s", name)
		}
		delete(before, name)
	}
	for name := range before {
		ts.Fatalf("kseg has removed %s", name)
	}
	return code
}

// turn is held while the folder and the environment of this process are those of a script.
var turn sync.Mutex

// mainIn runs kseg in this process, in the script's folder. The scripts themselves start it as one of its own by exec.
func mainIn(ts *testscript.TestScript, args []string) int {
	turn.Lock()
	defer turn.Unlock()
	for _, name := range []string{"COLUMNS", "NO_COLOR", "KAFKA_LOG_DIRS", "TMPDIR"} {
		before := os.Getenv(name)
		ts.Check(os.Setenv(name, ts.Getenv(name)))
		defer os.Setenv(name, before)
	}
	before, err := os.Getwd()
	ts.Check(err)
	ts.Check(os.Chdir(ts.MkAbs(".")))
	defer func() { ts.Check(os.Chdir(before)) }()
	return Main(args, strings.NewReader(""), ts.Stdout(), ts.Stderr())
}

func run(ts *testscript.TestScript, command string, args []string) (code int) {
	err := ts.Exec(command, args...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}

// treeState describes every file below the script's folder, out/ excepted, by its mode, size and modification time.
func treeState(ts *testscript.TestScript) map[string]string {
	work := ts.Getenv("WORK")
	states := map[string]string{}
	ts.Check(filepath.WalkDir(work, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == filepath.Join(work, "out") {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		state := fmt.Sprint(info.Mode(), info.ModTime())
		if path == filepath.Join(work, ".tmp") {
			state = "" // $TMPDIR: temporary files may come there, if they go again
		}
		if info.Mode().IsRegular() {
			state += fmt.Sprint(" ", info.Size())
		}
		states[path] = state
		return nil
	}))
	return states
}

func scriptCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: code N [COMMAND...]")
	}
	got := ts.Getenv(codeVariable)
	switch {
	case len(args) > 1 && args[1] == "kseg":
		got = strconv.Itoa(runKseg(ts, args[2:]))
	case len(args) > 1:
		got = strconv.Itoa(run(ts, args[1], args[2:]))
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// destination is the folder to copy to: the second argument, or what the first is called.
func destination(ts *testscript.TestScript, name string, args []string) string {
	dst := filepath.Base(name)
	if len(args) > 1 {
		dst = args[1]
	}
	return ts.MkAbs(dst)
}

func scriptCopy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: copy CASE [DEST]")
	}
	ts.Check(fixture.Copy(destination(ts, args[0], args), args[0]))
}

func scriptDamage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: damage RECIPE [DEST]")
	}
	r, err := fixture.FindRecipe(args[0])
	ts.Check(err)
	dst := destination(ts, r.Base, args)
	ts.Check(fixture.Copy(dst, r.Base))
	ts.Check(fixture.ApplyTo(dst, r.Steps))
}

func scriptStep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: step DIR STEP...")
	}
	ts.Check(fixture.ApplyTo(ts.MkAbs(args[0]), strings.Join(args[1:], " ")))
}

func scriptUngzip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: ungzip FILE")
	}
	name, ok := strings.CutSuffix(ts.MkAbs(args[0]), ".gz")
	if !ok {
		ts.Fatalf("%s does not end in .gz", args[0])
	}
	r, err := gzip.NewReader(strings.NewReader(ts.ReadFile(args[0])))
	ts.Check(err)
	data, err := io.ReadAll(r)
	ts.Check(err)
	ts.Check(os.WriteFile(name, data, 0o644))
	ts.Check(os.Remove(name + ".gz"))
}

func scriptJSONSchema(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: jsonschema FILE")
	}
	ts.Check(fixture.CheckJSONLines(ts.ReadFile(args[0])))
}
