//go:build oracle

package salvage

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"kseg/internal/fixture"
)

// What was salvaged is loaded by a real broker's classes, after a clean stop and after another one, with the log end
// that was told and without a change to any log: all damaged partitions of the collection, and random ones.
func TestOracleLoad(t *testing.T) {
	java := fixture.CompileJava(t, filepath.Join("oracle", "Load.java"))
	var dirs, want []string
	add := func(opts Options, paths ...string) {
		res, out := one(t, opts, paths...)
		if res.Err != nil {
			t.Errorf("%v: %v", paths, res.Err)
			return
		}
		dirs = append(dirs, out)
		answer := fmt.Sprintf("%d %d true", res.LogStart, res.LogEnd)
		want = append(want, answer+" "+answer)
	}
	for _, r := range fixture.Recipes(t) {
		add(Options{}, fixture.Damaged(t, r.Name))
		add(Options{Records: true, FixBits: true}, fixture.Damaged(t, r.Name))
	}
	for seed := range mutations {
		dir := fixture.Dir(t, bases[seed%len(bases)])
		mutate(t, dir, rand.New(rand.NewPCG(uint64(seed), 7)))
		add(Options{Records: seed%2 == 0}, dir)
		dir = fixture.Dir(t, bases[seed%len(bases)])
		twoFaults(dir, seed)
		add(Options{Deleted: seed%2 == 0}, dir)
	}
	for _, name := range []string{"4.4.0/compacted/users-0", "4.4.0/internal/__consumer_offsets-0",
		"0.10.2.2/legacy/old-v0-then-v1-0", "0.10.2.2/legacy/old-v1-gzip-0", "4.4.0/legacy/mix-0"} {
		add(Options{}, fixture.Dir(t, name))
	}
	lines := strings.NewReader(strings.Join(dirs, "\n") + "\n")
	got := strings.Split(strings.TrimSpace(string(java.Run(t, lines, "Load"))), "\n")
	if len(got) != len(dirs) {
		t.Fatalf("%d answers to %d questions", len(got), len(dirs))
	}
	for i, answer := range got {
		if answer != want[i] {
			t.Errorf("%s: %s, want %s", dirs[i], answer, want[i])
		}
	}
}

// What Kafka's own follower code cuts off random logs is not taken, unless it is asked for, and told.
func TestOracleCutOff(t *testing.T) {
	java := fixture.CompileJava(t, filepath.Join("oracle", "Truncate.java"))
	rng, root := rand.New(rand.NewPCG(5, 6)), t.TempDir()
	var tasks strings.Builder
	var dirs []string
	var ends []int64
	for i := range 60 {
		dir := filepath.Join(root, fmt.Sprintf("t%d-0", i))
		fixture.WriteKeyedLog(t, rng, dir, 1796000000000)
		all := batchesOf(t, dir)
		dirs, ends = append(dirs, dir), append(ends, all[len(all)-1].NextOffset())
		fmt.Fprintf(&tasks, "%s\t%d\n", dir, all[rng.IntN(len(all))].NextOffset())
	}
	answers := strings.Fields(string(java.Run(t, strings.NewReader(tasks.String()), "Truncate")))
	cut := 0
	for i, dir := range dirs {
		left := batchesOf(t, dir)
		deleted, _ := filepath.Glob(filepath.Join(dir, "*.log.deleted"))
		deleted = slices.DeleteFunc(deleted, func(name string) bool {
			info, err := os.Stat(name)
			return err == nil && info.Size() == 0 // the active segment had nothing
		})
		res, out := one(t, Options{}, dir)
		got := []string{}
		if res.Err == nil {
			for _, b := range batchesOf(t, out) {
				got = append(got, string(b.Raw))
			}
		}
		want := []string{}
		for _, b := range left {
			want = append(want, string(b.Raw))
		}
		if res.Err != nil || fmt.Sprint(res.LogEnd) != answers[i] || !slices.Equal(got, want) ||
			slices.ContainsFunc(res.Lost, func(l Lost) bool { return l.Elsewhere }) != (len(deleted) > 0) {
			t.Errorf("%s: %v, to %d, want %s, %d batches of %d; lost %+v", dir, res.Err, res.LogEnd, answers[i], len(got),
				len(want), res.Lost)
		}
		if len(deleted) == 0 {
			continue
		}
		cut++
		if all, _ := one(t, Options{Deleted: true}, dir); all.Err != nil || all.LogEnd != ends[i] {
			t.Errorf("%s: asked for: %v, to %d, want %d; lost %+v", dir, all.Err, all.LogEnd, ends[i], all.Lost)
		}
	}
	t.Logf("%d of %d logs had segments cut off", cut, len(dirs))
}

// A real broker starts on whole log directories that were salvaged, loads each partition with the offsets that were
// told, and serves them: one that was whole, and two that were damaged.
func TestOracleServes(t *testing.T) {
	java := fixture.CompileJava(t, fixture.LoggerSource(t))
	port := 24092
	if text := os.Getenv("KSEG_ORACLE_PORT"); text != "" {
		port, _ = strconv.Atoi(text)
	}
	for i, c := range []struct {
		root    string
		dirs    []string
		damaged bool
	}{{"4.4.0/internal", []string{"."}, false}, {"4.4.0/internal", []string{"."}, true},
		{"4.4.0/logdirs/clean", []string{"meta", "data1", "data2"}, true}} {
		root, out := fixture.Dir(t, c.root), t.TempDir()
		want, dirs := map[string]string{}, []string{}
		for _, d := range c.dirs {
			source, to := filepath.Join(root, d), filepath.Join(out, "salvaged", d)
			if c.damaged {
				damageAll(t, source, i)
			}
			all, err := salvageInto(t, Options{Dir: to}, source)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range all {
				if s.Err != nil {
					t.Errorf("%s: %v", s.Partition, s.Err)
				}
				if !strings.HasPrefix(s.Partition, "__cluster") {
					want[s.Partition] = fmt.Sprintf(", logEndOffset=%d)", s.LogEnd)
				}
			}
			dirs = append(dirs, to)
		}
		serve(t, java, port+10*i, dirs, want)
	}
}

// damageAll damages the partitions of a log directory but for the metadata.
func damageAll(t *testing.T, dir string, seed int) {
	t.Helper()
	partitions, err := filepath.Glob(filepath.Join(dir, "*-[0-9]"))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range partitions {
		if !strings.Contains(p, "__cluster") {
			mutate(t, p, rand.New(rand.NewPCG(uint64(seed), uint64(i))))
		}
	}
}

// serve starts a broker on log directories, the first of which has the metadata, and asks it for the ends of all logs.
func serve(t *testing.T, java fixture.Java, port int, dirs []string, want map[string]string) {
	t.Helper()
	properties := fixture.BrokerProperties(1, port, dirs, "metadata.log.dir="+dirs[0],
		"log.retention.check.interval.ms=86400000", "log.initial.task.delay.ms=86400000",
		"log.cleaner.backoff.ms=86400000", "group.coordinator.rebalance.protocols=classic")
	b := fixture.StartBroker(t, java, properties)
	defer b.Stop(syscall.SIGKILL)
	b.Output.Await(t, "Kafka Server started", 1)
	ends := string(java.Run(t, nil, "org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server",
		fmt.Sprintf("127.0.0.1:%d", port)))
	output, _ := b.Output.Until("Kafka Server started", 1)
	for name, offsets := range want {
		loaded := false
		for _, line := range strings.Split(output, "\n") {
			loaded = loaded || strings.Contains(line, "Completed load of Log(") && strings.Contains(line, "/"+name+",") &&
				strings.Contains(line, offsets)
		}
		cut := strings.LastIndexByte(name, '-')
		// The coordinator may have ended a transaction meanwhile.
		if !loaded || !strings.Contains(ends, name[:cut]+":"+name[cut+1:]+":") && !strings.HasPrefix(name, "__") {
			t.Errorf("%s: loaded with %s: %t; not among\n%s", name, offsets, loaded, ends)
		}
	}
	if strings.Contains(output, "Stopping serving logs") {
		t.Error("a log directory is not served")
	}
	t.Logf("%d partitions are loaded", len(want))
}
