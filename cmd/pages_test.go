package cmd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

var shBlock = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$")

// shBlocks are the blocks of shell commands in a page.
func shBlocks(t *testing.T, page string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range shBlock.FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// sandbox is a folder in which the paths of the pages are found, as are the programs that reach other machines: ssh and
// kubectl are scripts that run on this one what they are given for another.
type sandbox struct{ dir string }

func newSandbox(t *testing.T) sandbox {
	t.Helper()
	s := sandbox{t.TempDir()}
	for _, brokers := range []string{"backup", "restored", "broker1", "broker2", "broker3"} {
		for _, data := range []string{"data1", "data2", "meta"} {
			to := filepath.Join(s.dir, brokers, data)
			if err := fixture.Copy(to, "4.4.0/logdirs/clean/"+data); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, dir := range []string{"bin", "reports"} {
		if err := os.Mkdir(filepath.Join(s.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.tool(t, "ssh", `host=$1; shift; eval "$(echo "$*" | sed "s#/var/lib/kafka/data#$SANDBOX/$host/*#")"`)
	s.tool(t, "kubectl", `while [ "$1" != -- ]; do shift; done; shift 2
eval "kseg $(echo "$*" | sed "s#/proc/1/root/var/lib/kafka/data#$SANDBOX/broker1/*#")"`)
	return s
}

func (s sandbox) tool(t *testing.T, name, script string) {
	t.Helper()
	err := os.WriteFile(filepath.Join(s.dir, "bin", name), []byte("#!/bin/bash\n"+script+"\n"), 0o755)
	if err != nil {
		t.Fatal(err)
	}
}

// run runs a script as a person does who pastes it, all of it, and gives the exit code of its last command.
func (s sandbox) run(t *testing.T, script string, env ...string) (output string, code int) {
	t.Helper()
	for _, path := range []string{"/backup/", "/reports/"} {
		script = strings.ReplaceAll(script, " "+path, " "+s.dir+path)
		script = strings.ReplaceAll(script, "\""+path, "\""+s.dir+path)
	}
	c := exec.Command("bash", "--noprofile", "--norc", "-c", script)
	c.Dir = s.dir
	c.Env = append(os.Environ(), append(env, "SANDBOX="+s.dir,
		"PATH="+filepath.Join(s.dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))...)
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

func needsBash(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
}

// Each command of docs/ci-backups.md works as pasted.
func TestBackupPageRuns(t *testing.T) {
	needsBash(t)
	s := newSandbox(t)
	for _, block := range shBlocks(t, filepath.Join("..", "docs", "ci-backups.md")) {
		for line := range strings.Lines(block) {
			if out, code := s.run(t, line); code != 0 || strings.Contains(out, "No such file") {
				t.Errorf("%send with %d:\n%s", line, code, out)
			}
		}
	}
}

// Each block of docs/fleet.md works as pasted, once the reports of all shards are there.
func TestFleetPageRuns(t *testing.T) {
	needsBash(t)
	s := newSandbox(t)
	for i, block := range shBlocks(t, filepath.Join("..", "docs", "fleet.md")) {
		for shard := 2; shard <= 4 && i == 0; shard++ {
			first, _, _ := strings.Cut(block, "\n")
			first = strings.ReplaceAll(strings.ReplaceAll(first, "1/4 /", fmt.Sprintf("%d/4 /", shard)), "shard-1",
				fmt.Sprintf("shard-%d", shard))
			if out, code := s.run(t, first); code != 0 {
				t.Fatalf("%s ends with %d:\n%s", first, code, out)
			}
		}
		if out, code := s.run(t, block); code != 0 || !strings.Contains(out, "clean: ") {
			t.Errorf("%sends with %d:\n%s", block, code, out)
		}
	}
}

// The scripts of the Kubernetes jobs and of the playbook work together as the page says.
func TestFleetExamplesRun(t *testing.T) {
	needsBash(t)
	s := newSandbox(t)
	job := readExample(t, "verify-job.yaml")
	verify := regexp.MustCompile(`(?s)>-\n(.*?)\n +volumeMounts`).FindStringSubmatch(job)[1]
	for index := range 4 {
		out, code := s.run(t, strings.Join(strings.Fields(verify), " "), fmt.Sprintf("JOB_COMPLETION_INDEX=%d", index))
		if code != 0 {
			t.Fatalf("shard %d ends with %d:\n%s", index, code, out)
		}
	}
	report := regexp.MustCompile(`args: \[(report.*?)\]`).FindStringSubmatch(job)[1]
	out, code := s.run(t, "kseg "+strings.ReplaceAll(report, ",", ""))
	if code != 0 || !strings.Contains(out, "clean: ") {
		t.Errorf("the report ends with %d:\n%s", code, out)
	}

	play := regexp.MustCompile(`ansible\.builtin\.shell: (.*)`).FindAllStringSubmatch(readExample(t,
		"verify-fleet.yml"), -1)
	for _, broker := range []string{"broker1", "broker2"} {
		line := strings.ReplaceAll(play[0][1], "{{ log_dirs }}", broker+"/*")
		line = strings.ReplaceAll(line, "/tmp/kseg-report", "reports/"+broker)
		if out, code := s.run(t, line); code != 0 {
			t.Errorf("%s ends with %d:\n%s", line, code, out)
		}
	}
	if out, code := s.run(t, "rm reports/shard-*; "+play[1][1]); code != 0 || !strings.Contains(out, "clean: ") {
		t.Errorf("%s ends with %d:\n%s", play[1][1], code, out)
	}
}

// The manifest and the playbook are what Kubernetes and Ansible take, where there are programs that can tell.
func TestFleetExamplesAreValid(t *testing.T) {
	for file, check := range map[string][]string{
		"verify-job.yaml":  {"kubernetes-validate", "--strict"},
		"verify-fleet.yml": {"ansible-playbook", "--syntax-check"},
	} {
		t.Run(check[0], func(t *testing.T) {
			if _, err := exec.LookPath(check[0]); err != nil {
				t.Skip(err)
			}
			out, err := exec.Command(check[0], check[1], filepath.Join("..", "docs", "examples", file)).CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func readExample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
