package cmd_test

import (
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"kseg/cmd"
	"kseg/internal/fixture"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"kseg": func() { os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the transcripts of testdata/script. Besides testscript's own commands they know
//
//	copy CASE [NAME]     a folder of testdata/logdirs, copied here under its own or that name
//	damage RECIPE [NAME] the same of a damaged partition
//	code N COMMAND...    run a command that must end with that exit code
func TestScripts(t *testing.T) {
	recipes := map[string]fixture.Recipe{}
	for _, r := range fixture.Recipes(t) {
		recipes[r.Name] = r
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("KSEG_UPDATE_SCRIPTS") != "",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"copy": func(ts *testscript.TestScript, neg bool, args []string) {
				ts.Check(copyCase(ts, args))
			},
			"damage": func(ts *testscript.TestScript, neg bool, args []string) {
				if len(args) == 0 || recipes[args[0]].Base == "" {
					ts.Fatalf("damage RECIPE [NAME]: no such recipe")
				}
				recipe := recipes[args[0]]
				args[0] = recipe.Base
				ts.Check(copyCase(ts, args))
				ts.Check(fixture.ApplyTo(ts.MkAbs(copyName(args)), recipe.Steps))
			},
			"code": runForCode,
		},
	})
}

func copyName(args []string) string {
	if len(args) > 1 {
		return args[1]
	}
	return path.Base(args[0])
}

func copyCase(ts *testscript.TestScript, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: copy CASE [NAME]")
	}
	return fixture.Copy(ts.MkAbs(copyName(args)), args[0])
}

// runForCode implements "code N COMMAND...".
func runForCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("code %d, want %d", got, want)
	}
}
