package verify

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// mutate changes one of the files as three bytes say: which file, how and where. It returns the name of the file, or ""
// if nothing was changed.
func mutate(files map[string][]byte, how []byte) string {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) == 0 || len(how) < 5 {
		return ""
	}
	name := names[int(how[0])%len(names)]
	data := slices.Clone(files[name])
	if len(data) == 0 {
		data = []byte{0}
	}
	at := (int(how[2])<<8 | int(how[3])) % len(data)
	n := min(1+int(how[4]), len(data)-at)
	switch how[1] % 8 {
	case 0:
		data[at] ^= 1 << (how[4] % 8)
	case 1:
		data[at] = how[4]
	case 2:
		clear(data[at : at+n])
	case 3:
		data = data[:at]
	case 4:
		data = append(data, data[at:at+n]...)
	case 5:
		data = slices.Insert(data, at, data[at:at+n]...)
	case 6:
		data = slices.Delete(data, at, at+n)
	case 7:
		if how[4]%2 == 0 {
			delete(files, name)
		} else {
			delete(files, name)
			files[names[int(how[4])%len(names)]] = data
		}
		return name
	}
	files[name] = data
	return name
}

// recordsOf is a digest of all records that can be read from the logs, by a reader that does no more than that.
func recordsOf(files map[string][]byte) uint64 {
	sum := fnv.New64a()
	reader := format.NewRecordReader(1<<20, nil)
	var names []string
	for name := range files {
		if strings.HasSuffix(name, ".log") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for s := format.NewScanner(files[name], 0, -1); s.Next(); {
			b := s.Batch()
			if b == nil || !b.Valid() {
				continue
			}
			var rec format.Record
			for reader.Reset(b); reader.Next(&rec); {
				fmt.Fprint(sum, rec.Offset, rec.Timestamp, rec.Sequence, rec.Key, rec.Value, rec.Headers, b.ProducerID,
					b.ProducerEpoch)
			}
		}
	}
	return sum.Sum64()
}

func readFiles(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// FuzzDirectory changes files of a healthy partition at random. Nothing panics or hangs, places lie inside their files,
// the findings do not depend on jobs and runs, and a change of what the records say, made to one log alone, never
// passes.
func FuzzDirectory(f *testing.F) {
	bases := []string{plainBase, txnBase, "4.4.0/damage-base/zipped/orders-0"}
	var originals []map[string][]byte
	var digests []uint64
	for _, base := range bases {
		originals = append(originals, readFiles(f, fixture.Dir(f, base)))
		digests = append(digests, recordsOf(originals[len(originals)-1]))
	}
	for file := range 20 {
		for how := range 8 {
			if !fixture.Sampled(8*file+how, 8) {
				continue
			}
			f.Add([]byte{byte(file), byte(file), byte(how), byte(how), byte(37 * file), byte(11 * how)})
		}
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) == 0 || len(input) > 40 {
			return
		}
		which := int(input[0]) % len(bases)
		files := map[string][]byte{}
		for name, data := range originals[which] {
			files[name] = data
		}
		var changed []string
		for how := input[1:]; len(how) >= 5; how = how[5:] {
			changed = append(changed, mutate(files, how))
		}
		dir := filepath.Join(t.TempDir(), "orders-0")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, data := range files {
			writeFile(t, filepath.Join(dir, name), data)
		}
		holdsUp(t, dir, files, recordsOf(files) != digests[which] && len(changed) == 1 && strings.HasSuffix(changed[0],
			".log"))
	})
}

func holdsUp(t *testing.T, dir string, files map[string][]byte, damaged bool) {
	t.Helper()
	found, _ := runOn(t, Options{Level: Records}, dir)
	worst := Severity(0)
	var texts []string
	for i := range found {
		f := &found[i]
		worst = max(worst, f.Severity)
		texts = append(texts, line(f)+f.Message)
		size := int64(len(files[f.File]))
		if f.Pos > size || f.Pos >= 0 && f.Len >= 0 && f.Pos+f.Len > size {
			t.Errorf("%s: %d bytes at %d, but the file has %d", f.Code, f.Len, f.Pos, size)
		}
	}
	if damaged && worst < Warning {
		t.Errorf("records were changed and nothing worse than a note was found: %v", texts)
	}
	for _, o := range []Options{{Jobs: 2, run: 1}, {Jobs: 1, run: 800}} {
		o.Level = Records
		again, _ := runOn(t, o, dir)
		var other []string
		for i := range again {
			other = append(other, line(&again[i])+again[i].Message)
		}
		if !slices.Equal(texts, other) {
			t.Errorf("%d jobs and runs of %v: %s\nfound, where one run has\n%s", o.Jobs, o.run, strings.Join(other, "\n"),
				strings.Join(texts, "\n"))
		}
	}
}
