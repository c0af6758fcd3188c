package cmd_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kseg/cmd"
	"kseg/internal/fixture"
)

// kseg runs a command line in this process.
func kseg(args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	code = cmd.Main(args, strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), code
}

// The outputs that are frozen for a log, and the flags that give them. Other files have the first only, without flags.
var frozen = []struct {
	suffix string
	flags  []string
}{
	{".dump.txt", []string{"--deep-iteration", "--print-data-log"}},
	{".deep.txt", []string{"--deep-iteration"}},
	{".shallow.txt", nil},
}

// dumpFlags are the flags by which the real tool made the output of that suffix for a file.
func dumpFlags(file string, flags []string) []string {
	if ext := filepath.Ext(file); ext == ".log" || ext == ".checkpoint" {
		return flags
	}
	return nil
}

// byCase groups golden names by the folder in which the real tool was run: version and case.
func byCase(names []string) map[string][]string {
	cases := map[string][]string{}
	for _, name := range names {
		parts := strings.SplitN(name, "/", 3)
		if parts[0] == "damage" {
			continue
		}
		dir := parts[0] + "/" + parts[1]
		cases[dir] = append(cases[dir], parts[2])
	}
	return cases
}

// exited returns the exit code and stderr of the real tool.
func exited(t *testing.T, name string) (ok bool, stderr string) {
	t.Helper()
	text, found := fixture.FindGolden(t, name)
	if !found {
		return true, ""
	}
	first, stderr, _ := strings.Cut(string(text), "\n")
	return first == "exit: 0", stderr
}

// diff shows where two texts part.
func diff(got, want string) string {
	g, w := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	for i := range max(len(g), len(w)) {
		var a, b string
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			return fmt.Sprintf("\ngot  %.600q\nwant %.600q", a, b)
		}
	}
	return "no difference"
}

// TestDumpOfRealFiles holds `kseg dump` to the real tool's stdout, byte for byte, and under --kafka-compat to its
// stderr, for every healthy file of every version. Where the real tool dies, its stdout is a prefix of ours.
func TestDumpOfRealFiles(t *testing.T) {
	for _, kind := range frozen {
		for dir, names := range byCase(fixture.Goldens(t, kind.suffix)) {
			t.Run(strings.Trim(kind.suffix, ".")+"/"+dir, func(t *testing.T) {
				t.Chdir(fixture.Dir(t, dir))
				for i, name := range names {
					if kind.suffix != ".dump.txt" && !fixture.Sampled(i, 4) {
						continue
					}
					file := strings.TrimSuffix(name, kind.suffix)
					want := string(fixture.Golden(t, dir+"/"+name))
					exit := file + ".exit"
					if kind.suffix != ".dump.txt" {
						exit = strings.TrimSuffix(name, ".txt") + ".exit"
					}
					ok, wantErr := exited(t, dir+"/"+exit)
					checkDump(t, file, dumpFlags(file, kind.flags), ok, want, wantErr, kind.suffix == ".dump.txt")
				}
			})
		}
	}
}

// checkDump compares both modes of dump with the real tool's streams for one file in the working directory.
func checkDump(t *testing.T, file string, flags []string, ok bool, want, wantErr string, errToo bool) {
	t.Helper()
	args := append([]string{"dump", "--files", file}, flags...)
	for _, compat := range []bool{false, true} {
		if compat {
			args = append(args, "--kafka-compat")
		}
		want := want
		if !compat && slotsOfNothing(t, file) {
			want, _, _ = strings.Cut(want, "\n")
			want += "\n"
		}
		got, stderr, code := kseg(args...)
		switch {
		case !ok:
			if !strings.HasPrefix(got, want) {
				t.Errorf("%v: the real tool's stdout is no prefix of ours:%s", args, diff(got, want))
			}
		case got != want:
			t.Errorf("%v: %s", args, diff(got, want))
		}
		if code > 1 {
			t.Errorf("%v: code %d, %s", args, code, stderr)
		}
		if compat && ok && errToo && relativeErr(t, stderr) != wantErr {
			t.Errorf("%v: stderr:%s", args, diff(relativeErr(t, stderr), wantErr))
		}
	}
}

// slotsOfNothing tells an index of preallocated slots beside an empty log. The real tool shows its first slot as an
// entry, or dies; kseg shows none.
func slotsOfNothing(t *testing.T, file string) bool {
	t.Helper()
	if ext := filepath.Ext(file); ext != ".index" && ext != ".timeindex" {
		return false
	}
	slots, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(strings.TrimSuffix(file, filepath.Ext(file)) + ".log")
	if err != nil {
		t.Fatal(err)
	}
	return len(log) == 0 && len(bytes.Trim(slots, "\x00")) == 0 && len(slots) > 0
}

// relativeErr takes the working directory out of the absolute paths that the summaries on stderr name.
func relativeErr(t *testing.T, stderr string) string {
	t.Helper()
	dir, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(stderr, dir+"/", "")
}

// TestDumpOfManyBatches compares the hash of an output of 108,002 lines.
func TestDumpOfManyBatches(t *testing.T) {
	if testing.Short() {
		t.Skip("100 MB of output")
	}
	const dir, file = "4.4.0/tiny-batches", "tiny-0/00000000000000000000.log"
	t.Chdir(fixture.Dir(t, dir))
	for _, kind := range frozen {
		name := file + strings.Replace(kind.suffix, ".txt", ".sha256", 1)
		want := strings.TrimSpace(string(fixture.Golden(t, dir+"/"+name)))
		got, stderr, code := kseg(append([]string{"dump", "--files", file}, kind.flags...)...)
		if sum := sha256.Sum256([]byte(got)); hex.EncodeToString(sum[:]) != want || code != 0 {
			t.Errorf("%s: code %d, hash %x, want %s; stderr %q", kind.suffix, code, sum, want, stderr)
		}
	}
}

// TestDumpOfDamagedFiles: under --kafka-compat dump prints what the real tool prints of a damaged file, and the real
// tool's stdout is a prefix of ours where that tool crashes.
func TestDumpOfDamagedFiles(t *testing.T) {
	for _, kind := range []struct {
		suffix string
		flags  []string
	}{
		{".dump.txt", []string{"--deep-iteration", "--print-data-log"}},
		{".sanity.txt", []string{"--index-sanity-check"}},
	} {
		goldens := map[string][]string{}
		for _, name := range fixture.Goldens(t, kind.suffix) {
			if parts := strings.SplitN(name, "/", 3); parts[0] == "damage" {
				goldens[parts[1]] = append(goldens[parts[1]], parts[2])
			}
		}
		if len(goldens) < 20 {
			t.Fatalf("only %d recipes have outputs", len(goldens))
		}
		for recipe, names := range goldens {
			t.Run(strings.Trim(kind.suffix, ".")+"/"+recipe, func(t *testing.T) {
				t.Chdir(filepath.Dir(fixture.Damaged(t, recipe)))
				for _, name := range names {
					file := strings.TrimSuffix(name, kind.suffix)
					exit := strings.TrimSuffix(name, ".dump.txt")
					exit = strings.TrimSuffix(exit, ".txt") + ".exit"
					ok, wantErr := exited(t, "damage/"+recipe+"/"+exit)
					want := string(fixture.Golden(t, "damage/"+recipe+"/"+name))
					flags := kind.flags
					if kind.suffix == ".dump.txt" {
						flags = dumpFlags(file, flags)
					}
					checkDamagedDump(t, file, flags, ok, want, wantErr)
				}
			})
		}
	}
}

func checkDamagedDump(t *testing.T, file string, flags []string, ok bool, want, wantErr string) {
	t.Helper()
	args := append([]string{"dump", "--kafka-compat", "--files", file}, flags...)
	got, stderr, code := kseg(args...)
	if code == 2 || code > 3 {
		t.Errorf("%v: code %d, %s", args, code, stderr)
	}
	if !ok {
		if !strings.HasPrefix(got, want) {
			t.Errorf("%v: the real tool's stdout is no prefix of ours:%s", args, diff(got, want))
		}
		return
	}
	if got != want {
		t.Errorf("%v:%s", args, diff(got, want))
	}
	if got := relativeErr(t, stderr); got != wantErr {
		t.Errorf("%v: stderr:%s", args, diff(got, wantErr))
	}
}

// TestDumpLeavesOutFalseAlarms: without --kafka-compat no segment is reported for not starting at offset 0, and other
// gaps still are.
func TestDumpLeavesOutFalseAlarms(t *testing.T) {
	alarm := regexp.MustCompile(`-1 is followed by`)
	t.Chdir(fixture.Dir(t, "4.4.0/compacted"))
	_, stderr, code := kseg("dump", "--deep-iteration", "--files", "users-0/00000000000000000460.log")
	if code != 0 || alarm.MatchString(stderr) {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
	_, compat, _ := kseg("dump", "--deep-iteration", "--kafka-compat", "--files", "users-0/00000000000000000460.log")
	if !alarm.MatchString(compat) {
		t.Errorf("--kafka-compat lacks the real tool's line: %q", compat)
	}
	if rest := strings.Replace(compat, "  -1 is followed by 460\n", "", 1); strings.Count(rest,
		"is followed by") != strings.Count(stderr, "is followed by") {
		t.Errorf("real gaps differ: %q against %q", stderr, compat)
	}
}

// TestDumpOfInternalTopics: the decoders print what the real tool's print, whether a flag names them or they are
// recognised by the directory.
func TestDumpOfInternalTopics(t *testing.T) {
	decoders := map[string]string{
		"__consumer_offsets":  "--offsets-decoder",
		"__transaction_state": "--transaction-log-decoder",
		"__share_group_state": "--share-group-state-decoder",
		"__cluster_metadata":  "--cluster-metadata-decoder",
	}
	seen := map[string]bool{}
	for dir, names := range byCase(fixture.Goldens(t, ".decoded.txt")) {
		t.Run(dir, func(t *testing.T) {
			t.Chdir(fixture.Dir(t, dir))
			for _, name := range names {
				file := strings.TrimSuffix(name, ".decoded.txt")
				want := string(fixture.Golden(t, dir+"/"+name))
				partition := filepath.Base(filepath.Dir(file))
				topic := partition[:strings.LastIndexByte(partition, '-')]
				seen[topic] = true
				for _, args := range [][]string{{"dump", "--files", file, decoders[topic]}, {"dump", "--records", file}} {
					got, stderr, code := kseg(args...)
					if got != want || code != 0 {
						t.Errorf("%v: code %d, stderr %q:%s", args, code, stderr, diff(got, want))
					}
				}
			}
		})
	}
	if len(seen) != len(decoders) {
		t.Errorf("only %v were compared", seen)
	}
}
