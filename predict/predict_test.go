package predict

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/render"
)

func run(t *testing.T, o Options, paths ...string) []*Broker {
	t.Helper()
	set, err := logdir.Open(paths, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o.NowMs, o.MaxBatchBytes, o.Jobs, o.Threads = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC).UnixMilli(), 1<<20, 2,
		max(o.Threads, 1)
	all, problems, err := Run(context.Background(), set, o)
	if err != nil || len(problems) > 0 {
		t.Fatalf("%v, %v", err, problems)
	}
	return all
}

func TestParseEdit(t *testing.T) {
	for text, want := range map[string]string{"rm a/*.index": "a/*.index", "truncate b 17": "b", " rm  c ": "c"} {
		e, err := ParseEdit(text)
		if err != nil || e.Pattern != want || (e.Truncate != nil) != strings.Contains(text, "truncate") {
			t.Errorf("%q: %v, %v", text, e, err)
		}
	}
	for _, text := range []string{"", "rm", "rm a b", "truncate a", "truncate a -1", "truncate a x", "mv a b"} {
		if _, err := ParseEdit(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// TestSecondsFollowTheLongestPartition: threads share out partitions, not the bytes of one.
func TestSecondsFollowTheLongestPartition(t *testing.T) {
	root := fixture.Dir(t, "4.4.0/logdirs/killed")
	o := Options{Rate: 1000, Threads: 1}
	b := run(t, o, root+"/data1")[0]
	one := b.Seconds(&o)
	o.Threads = 1000
	many := b.Seconds(&o)
	if one <= many || many <= 0 || one*1000 != float64(b.BytesRead()) {
		t.Errorf("%v s with a thread, %v s with many, %d bytes", one, many, b.BytesRead())
	}
}

// TestBrokersApart: what lies beside a broker's log directories does not decide about them.
func TestBrokersApart(t *testing.T) {
	clean, other := fixture.Dir(t, "4.4.0/logdirs/clean"), fixture.Damaged(t, "payload-flip")
	all := run(t, Options{}, clean+"/data1", clean+"/data2", clean+"/meta", other)
	if len(all) != 2 || all[0].Bad() || !all[1].Bad() {
		t.Fatalf("%d brokers", len(all))
	}
	text := string(all[0].AppendText(nil, &Options{}, Style{Theme: render.NewTheme(false), Width: 100}))
	for _, says := range []string{"nothing keeps the broker from starting", "13 partitions are loaded without loss",
		"free of"} {
		if !strings.Contains(text, says) {
			t.Errorf("it does not say %q:\n%s", says, text)
		}
	}
}

// TestEmptyDirectory: a log directory with nothing in it, as where a disk is not mounted, keeps the others' broker from
// starting.
func TestEmptyDirectory(t *testing.T) {
	clean := fixture.Dir(t, "4.4.0/logdirs/clean")
	all := run(t, Options{}, clean+"/data1", t.TempDir(), clean+"/meta")
	if len(all) != 1 || len(all[0].Stops) != 1 || !strings.Contains(all[0].Stops[0].Text, "is its disk mounted?") {
		t.Errorf("%d brokers, %v", len(all), all[0].Stops)
	}
}

// TestServerProperties: what is not in log.dirs is not looked at, and what was there begins anew.
func TestServerProperties(t *testing.T) {
	clean := fixture.Dir(t, "4.4.0/logdirs/clean")
	var o Options
	o.UseServer([]format.Property{{Key: "node.id", Value: "1"}, {Key: "log.dirs", Value: clean + "/data1"},
		{Key: "metadata.log.dir", Value: clean + "/meta"}, {Key: "process.roles", Value: "broker,controller"}})
	b := run(t, o, clean+"/data1", clean+"/data2", clean+"/meta")[0]
	if len(b.Partitions) != 7 || len(b.Absent) != 5 || len(b.Notes) != 1 || !b.Bad() {
		t.Errorf("%d partitions, %v absent, %v", len(b.Partitions), b.Absent, b.Notes)
	}
	text := string(b.AppendText(nil, &o, Style{Theme: render.NewTheme(false), Width: 100}))
	for _, says := range []string{"they start over, empty: __consumer_offsets-1", "the broker does not look at it"} {
		if !strings.Contains(text, says) {
			t.Errorf("it does not say %q:\n%s", says, text)
		}
	}
}

// TestCopiesOfTheMetadataLog: LogManager passes over whatever is of the metadata topic, set aside or not.
func TestCopiesOfTheMetadataLog(t *testing.T) {
	root := fixture.Dir(t, "4.4.0/logdirs/clean")
	const aside = "-0.0123456789abcdef0123456789abcdef"
	for _, name := range []string{aside + "-delete", aside + "-future", "-1"} {
		if err := os.CopyFS(root+"/data1/__cluster_metadata"+name, os.DirFS(root+"/meta/__cluster_metadata-0")); err != nil {
			t.Fatal(err)
		}
	}
	b := run(t, Options{}, root+"/data1", root+"/data2", root+"/meta")[0]
	n := 0
	for _, p := range b.Partitions {
		if p.Partition.IsClusterMetadata() {
			n++
		}
	}
	if n != 1 || len(b.Stops) > 0 {
		t.Errorf("%d metadata logs are loaded, %v", n, b.Stops)
	}
}
