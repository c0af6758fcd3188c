package verify

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kseg/internal/fixture"
)

// stoppedDir makes a log directory around a partition: of a broker that stopped cleanly or not, with a recovery point.
func stoppedDir(t *testing.T, base, name string, clean bool, recoveryPoint string) string {
	t.Helper()
	dir := t.TempDir()
	if err := fixture.Copy(filepath.Join(dir, name), base); err != nil {
		t.Fatal(err)
	}
	topic, number, _ := strings.Cut(name, "-")
	writeFile(t, filepath.Join(dir, recoveryFile), []byte("0\n1\n"+topic+" "+number+" "+recoveryPoint+"\n"))
	writeFile(t, filepath.Join(dir, "meta.properties"),
		[]byte("version=1\nnode.id=1\ncluster.id=AABrc2VnAAAAAAAAAAAAAQ\n"))
	if clean {
		writeFile(t, filepath.Join(dir, ".kafka_cleanshutdown"), []byte(`{"version":0,"brokerEpoch":5}`))
	}
	return dir
}

// pad lets the indexes of a segment end in zeros.
func pad(t *testing.T, dir, base string) {
	t.Helper()
	for ext, size := range map[string]int64{".index": 20480, ".timeindex": 20472} {
		if err := os.Truncate(filepath.Join(dir, base+ext), size); err != nil {
			t.Fatal(err)
		}
	}
}

// nextStarts are log directories, and what is found in them because of what the next start does: all of it was seen
// with a real broker.
var nextStarts = []struct {
	name string
	make func(t *testing.T) string
	want []string // "severity code file"
	says []string // in the messages, and the next steps
}{
	{"zeros after the active indexes and a clean stop", func(t *testing.T) string {
		dir := stoppedDir(t, plainBase, "orders-0", true, "120")
		pad(t, filepath.Join(dir, "orders-0"), "00000000000000000096")
		return dir
	}, []string{"damage index-zero-slots", "damage timeindex-zero-slots"},
		[]string{"retention by time deletes the segment"}},
	{"zeros after the active indexes of a killed broker", func(t *testing.T) string {
		dir := stoppedDir(t, plainBase, "orders-0", false, "96")
		pad(t, filepath.Join(dir, "orders-0"), "00000000000000000096")
		return dir
	}, nil, nil},
	{"zeros after closed indexes above the recovery point", func(t *testing.T) string {
		dir := stoppedDir(t, plainBase, "orders-0", false, "0")
		pad(t, filepath.Join(dir, "orders-0"), "00000000000000000032")
		return dir
	}, []string{"warning index-zero-slots", "warning timeindex-zero-slots"}, []string{"the next start recovers the " +
		"segment and makes a new file"}},
	{"zeros after closed indexes below the recovery point", func(t *testing.T) string {
		dir := stoppedDir(t, plainBase, "orders-0", false, "96")
		pad(t, filepath.Join(dir, "orders-0"), "00000000000000000032")
		return dir
	}, []string{"damage index-zero-slots", "damage timeindex-zero-slots"}, nil},
	{"an index removed beside a bad batch", func(t *testing.T) string {
		dir := stoppedDir(t, plainBase, "orders-0", true, "120")
		apply(t, filepath.Join(dir, "orders-0"), "flip 00000000000000000032.log 1164:0\nremove 00000000000000000032.index")
		return dir
	}, []string{"damage index-missing", "damage batch-crc-mismatch"},
		[]string{"the next start cuts the segment at byte 1084, with which 20 offsets from 44 to 63 go",
			"put the index back first", "kseg verify --rebuild DIR"}},
	{"a bad batch after a clean stop", func(t *testing.T) string {
		dir := stoppedDir(t, plainBase, "orders-0", true, "120")
		apply(t, filepath.Join(dir, "orders-0"), "flip 00000000000000000032.log 1164:0")
		return dir
	}, []string{"damage batch-crc-mismatch"}, []string{"the next start does not look at it: the broker stopped cleanly"}},
	{"a bad batch below the recovery point", func(t *testing.T) string {
		dir := stoppedDir(t, plainBase, "orders-0", false, "96")
		apply(t, filepath.Join(dir, "orders-0"), "flip 00000000000000000032.log 1164:0")
		return dir
	}, []string{"damage batch-crc-mismatch"}, []string{"it is below the recovery point, 96"}},
	{"a bad batch above the recovery point", func(t *testing.T) string {
		dir := stoppedDir(t, plainBase, "orders-0", false, "32")
		apply(t, filepath.Join(dir, "orders-0"), "flip 00000000000000000032.log 1164:0")
		return dir
	}, []string{"damage batch-crc-mismatch"}, []string{"cuts the segment at byte 1084 and deletes 2 later segments, " +
		"with which 76 offsets from 44 to 119 go"}},
	{"zeros after a closed segment", func(t *testing.T) string {
		dir := stoppedDir(t, plainBase, "orders-0", true, "120")
		apply(t, filepath.Join(dir, "orders-0"), "zero 00000000000000000032.log 2933+13451")
		return dir
	}, []string{"damage zero-tail"}, []string{"the next start does not look at it", "truncate -s 2933"}},
	{"zeros after the last segment and a clean stop", func(t *testing.T) string {
		dir := stoppedDir(t, plainBase, "orders-0", true, "120")
		apply(t, filepath.Join(dir, "orders-0"), "zero 00000000000000000096.log 2237+8192")
		return dir
	}, []string{"damage zero-tail"}, []string{"the next start does not load the partition", "truncate -s 2237"}},
	{"the only copy within the log is to be deleted", func(t *testing.T) string {
		dir := stoppedDir(t, plainBase, "orders-0", true, "120")
		apply(t, filepath.Join(dir, "orders-0"), "rename 00000000000000000032.log 00000000000000000032.log.deleted")
		return dir
	}, []string{"damage leftover-deleted"}, []string{"offsets 32 to 63 are nowhere else"}},
	{"a segment was cleaned into the one before it", func(t *testing.T) string {
		dir := stoppedDir(t, plainBase, "orders-0", true, "120")
		of := filepath.Join(dir, "orders-0")
		apply(t, of, "rename 00000000000000000032.log 00000000000000000032.log.deleted\nrename 00000000000000000032.index "+
			"00000000000000000032.index.deleted\nrename 00000000000000000032.timeindex 00000000000000000032.timeindex.deleted")
		writeFile(t, filepath.Join(dir, "cleaner-offset-checkpoint"), []byte("0\n1\norders 0 64\n"))
		last := time.UnixMilli(1795980000000)
		for _, name := range []string{"00000000000000000000.log", "00000000000000000032.log.deleted"} {
			if err := os.Chtimes(filepath.Join(of, name), last, last); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}, nil, nil},
	{"retention was at work", func(t *testing.T) string {
		dir := stoppedDir(t, plainBase, "orders-0", true, "120")
		apply(t, filepath.Join(dir, "orders-0"), "rename 00000000000000000000.log 00000000000000000000.log.deleted\n"+
			"rename 00000000000000000000.index 00000000000000000000.index.deleted\n"+
			"rename 00000000000000000000.timeindex 00000000000000000000.timeindex.deleted")
		return dir
	}, nil, nil},
	{"the root of a disk", func(t *testing.T) string {
		dir := stoppedDir(t, plainBase, "orders-0", true, "120")
		if err := os.Mkdir(filepath.Join(dir, "lost+found"), 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}, []string{"damage unknown-directory"}, nil},
	{"meta.properties after a power cut", func(t *testing.T) string {
		dir := stoppedDir(t, plainBase, "orders-0", true, "120")
		writeFile(t, filepath.Join(dir, "meta.properties"), make([]byte, 96))
		return dir
	}, []string{"damage meta-properties-unreadable"}, []string{"no node.id"}},
}

// TestNextStartDecides: how bad it is, and what is said of it, follows from what the next start does from this marker,
// recovery point and metadata.
func TestNextStartDecides(t *testing.T) {
	for _, c := range nextStarts {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			found, _ := runOn(t, Options{Level: Records}, c.make(t))
			var got []string
			texts := ""
			for _, f := range found {
				if f.Severity > Note {
					got = append(got, f.Severity.String()+" "+f.Code)
				}
				texts += f.Message + " " + f.Next + "\n"
			}
			for _, want := range c.want {
				if !slices.Contains(got, want) {
					t.Errorf("got %q, and no %s", got, want)
				}
			}
			if len(got) > len(c.want)+1 || c.want == nil && len(got) > 0 {
				t.Errorf("got %q", got)
			}
			for _, says := range c.says {
				if !strings.Contains(texts, says) {
					t.Errorf("it does not say %q:\n%s", says, texts)
				}
			}
		})
	}
}

// TestCopyKind: which kind of copy a log directory is, by its marker and by what is newer than its logs.
func TestCopyKind(t *testing.T) {
	for _, c := range []struct {
		name, want string
		clean      bool
		steps      string
	}{
		{"stopped", "its broker stopped cleanly (.kafka_cleanshutdown)", true, ""},
		{"killed", "no clean stop: its broker was killed", false, ""},
		{"file by file", "incomplete are orders-0 from offset 112", false, "truncate 00000000000000000096.log 1495"},
	} {
		dir := stoppedDir(t, plainBase, "orders-0", c.clean, "120")
		if c.steps != "" {
			apply(t, filepath.Join(dir, "orders-0"), c.steps)
		}
		_, summary := runOn(t, Options{Level: Records}, dir)
		if len(summary.Copies) != 1 || !strings.Contains(summary.Copies[0], c.want) {
			t.Errorf("%s: %q", c.name, summary.Copies)
		}
	}
}
