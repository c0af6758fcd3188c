package cmd_test

import (
	"archive/tar"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// workflowScripts are the scripts of a workflow file that do not need its runner, by the names of their steps, in
// order.
func workflowScripts(t *testing.T, file string) (names []string, scripts map[string]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	scripts = map[string]string{}
	name, inScript := "", false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "      - name: "):
			name, inScript = strings.TrimSpace(strings.TrimPrefix(line, "      - name: ")), false
		case line == "        run: |\n":
			inScript = true
			names = append(names, name)
		case inScript && strings.HasPrefix(line, "          "):
			scripts[name] += strings.TrimPrefix(line, "          ")
		case strings.TrimSpace(line) != "":
			inScript = false
		}
	}
	return names, scripts
}

// archive packs folders of testdata/logdirs into a tar file, each at its top, after damage has been done to the copy.
func archive(t *testing.T, damage func(root string), cases ...string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "backup")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range cases {
		if err := fixture.Copy(filepath.Join(root, filepath.Base(name)), name); err != nil {
			t.Fatal(err)
		}
	}
	damage(root)
	file := filepath.Join(t.TempDir(), "backup.tar")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tar.NewWriter(f)
	if err := w.AddFS(os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

// step runs one script as a workflow's runner does.
func step(t *testing.T, dir, script string, env ...string) (output string, code int) {
	t.Helper()
	c := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script)
	c.Dir = dir
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// The scripts of docs/examples/verify-backup.yml do what docs/ci-backups.md says of them.
func TestBackupRecipe(t *testing.T) {
	for _, tool := range []string{"bash", "tar", "dd"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	names, scripts := workflowScripts(t, filepath.Join("..", "docs", "examples", "verify-backup.yml"))
	if want := []string{"Build kseg", "Restore", "Verify", "Prove that damage would be seen"}; !slices.Equal(names, want) {
		t.Fatalf("the scripts are %q, want %q", names, want)
	}
	healthy := []string{"4.4.0/logdirs/clean/data1", "4.4.0/logdirs/clean/data2", "4.4.0/logdirs/clean/meta"}
	none := func(string) {}
	flip := func(root string) {
		log := largestLog(t, root)
		data, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2] ^= 4
		if err := os.WriteFile(log, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name    string
		backup  string
		codes   []int // of Restore, Verify, Prove; the runner ends at the first that is not 0
		verdict string
		report  string
	}{
		{"healthy", archive(t, none, healthy...), []int{0, 0, 0}, `^clean: .*13 partitions`, `failures="0" errors="0"`},
		{"one bit", archive(t, flip, healthy...), []int{0, 1}, `^damaged: 1 damage`, `<failure type="batch-crc-mismatch"`},
		{"nothing", archive(t, none), []int{0, 3}, `^incomplete: `, `<error type="incomplete"`},
		{"cut off", cutOff(t, archive(t, none, healthy...)), []int{2}, "", ""},
	} {
		dir := t.TempDir()
		env := []string{"BACKUP=" + c.backup, "FAIL_ON=damage", "GITHUB_STEP_SUMMARY=" + filepath.Join(dir, "summary.md")}
		for i, want := range c.codes {
			if out, code := step(t, dir, scripts[names[1+i]], env...); code != want {
				t.Errorf("%s: %s ended with %d, want %d:\n%s", c.name, names[1+i], code, want, out)
			}
		}
		if c.verdict == "" {
			continue
		}
		for file, want := range map[string]string{"summary.md": c.verdict, "report.xml": c.report} {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil || !regexp.MustCompile(want).Match(text) {
				t.Errorf("%s: %s is not like %s: %v\n%s", c.name, file, want, err, text)
			}
		}
	}
}

func largestLog(t *testing.T, root string) (log string) {
	t.Helper()
	most := int64(0)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".log") || strings.Contains(path, "__") {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() > most {
			log, most = path, info.Size()
		}
		return err
	})
	if err != nil || log == "" {
		t.Fatal(fmt.Sprint("no log: ", err))
	}
	return log
}

// cutOff is the first third of a file.
func cutOff(t *testing.T, file string) string {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, info.Size()/3+100); err != nil {
		t.Fatal(err)
	}
	return file
}
