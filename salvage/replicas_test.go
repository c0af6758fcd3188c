package salvage

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// Two replicas that parted in an unclean election are no sources for one log, unless it is said which counts.
func TestDivergedReplicas(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/replicas/diverged")
	for _, line := range strings.Fields(string(fixture.Golden(t, "4.4.0/replicas/truncations.csv")))[1:] {
		name, at, _ := strings.Cut(line, ",")
		a, b := filepath.Join(dir, "b1", name), filepath.Join(dir, "b2", name)
		res, _ := one(t, Options{}, a, b)
		if res.Err == nil || !res.Diverged || fmt.Sprint(res.DivergedAt) != at {
			t.Errorf("%s: %v, diverged at %d, want %s", name, res.Err, res.DivergedAt, at)
		}
		for _, prefer := range []string{a, b} {
			alone, _ := one(t, Options{}, prefer)
			res, _ := one(t, Options{Prefer: prefer}, a, b)
			if res.Err != nil || res.LogEnd != alone.LogEnd || !res.Whole() || res.Records != alone.Records {
				t.Errorf("%s, of %s: %v, %d records to %d, want %d to %d", name, prefer, res.Err, res.Records, res.LogEnd,
					alone.Records, alone.LogEnd)
			}
		}
	}
}

// Of two replicas that are damaged in different batches every record comes back.
func TestDamagedReplicas(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"t0-0", "t1-0", "t3-0", "__transaction_state-0"} {
		want, _ := one(t, Options{}, filepath.Join(fixture.Dir(t, "4.4.0/replicas/truncated/b1"), name))
		dir := fixture.Dir(t, "4.4.0/replicas/truncated")
		var copies []string
		for i, broker := range []string{"b1", "b2"} {
			path := filepath.Join(dir, broker, name)
			copies = append(copies, path)
			flipBatches(t, path, r, i)
		}
		res, _ := one(t, Options{}, copies...)
		if res.Err != nil || !res.Whole() || res.Records != want.Records || res.LogEnd != want.LogEnd {
			t.Errorf("%s: %v, %d records to %d, want %d to %d; lost %v", name, res.Err, res.Records, res.LogEnd, want.Records,
				want.LogEnd, res.Lost)
		}
	}
}

// flipBatches damages every third batch of each log, beginning with one: bytes that the checksum covers.
func flipBatches(t *testing.T, dir string, r *rand.Rand, from int) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal("no log")
	}
	for _, name := range logs {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, pos := 0, 0; pos+61 <= len(raw); i++ {
			size := 12 + int(raw[pos+10])<<8 + int(raw[pos+11])
			if i%3 == from {
				raw[pos+21+r.IntN(size-21)] ^= 1 << r.IntN(8)
			}
			pos += size
		}
		if err := os.WriteFile(name, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// What a follower cut off because its leader never had it does not come back: the real replicas of the unclean
// election, before and after the follower had fetched what the leader has.
func TestWhatAFollowerCutOff(t *testing.T) {
	for _, line := range strings.Fields(string(fixture.Golden(t, "4.4.0/replicas/truncations.csv")))[1:] {
		name, text, _ := strings.Cut(line, ",")
		if name == "t4-0" {
			continue // of several segments
		}
		at, _ := strconv.ParseInt(text, 10, 64)
		diverged := filepath.Join(fixture.Dir(t, "4.4.0/replicas/diverged/b1"), name)
		fetched := filepath.Join(fixture.Dir(t, "4.4.0/replicas/truncated/b1"), name)
		before, _ := one(t, Options{}, diverged)
		after, _ := one(t, Options{}, fetched)
		cutOff(t, diverged, at, diverged, fetched)
		epochs := contents(t, fetched)["leader-epoch-checkpoint"]
		for _, deleted := range []bool{false, true} {
			res, _ := one(t, Options{Deleted: deleted}, fetched)
			if res.Err != nil || res.LogEnd != after.LogEnd || res.Records != after.Records ||
				len(res.Lost) == 0 && !strings.HasPrefix(name, "__") || // compacted: it may be what the cleaner replaced
				slices.ContainsFunc(res.Lost, func(l Lost) bool { return !l.Elsewhere }) {
				t.Errorf("%s, fetched: %v, %d records to %d, want %d to %d; %+v", name, res.Err, res.Records, res.LogEnd,
					after.Records, after.LogEnd, res.Lost)
			}
		}
		res, _ := one(t, Options{}, diverged)
		if res.LogEnd != at || len(res.Lost) != 1 || !strings.Contains(res.Lost[0].Reason, "--deleted") {
			t.Errorf("%s, cut off: to %d, want %d; %+v", name, res.LogEnd, at, res.Lost)
		}
		if res, _ := one(t, Options{Deleted: true}, diverged); res.LogEnd != before.LogEnd || len(res.Lost) > 0 {
			t.Errorf("%s, cut off, asked for: to %d, want %d; %+v", name, res.LogEnd, before.LogEnd, res.Lost)
		}
		if err := os.WriteFile(filepath.Join(diverged, "leader-epoch-checkpoint"), epochs, 0o644); err != nil {
			t.Fatal(err)
		}
		if res, _ := one(t, Options{Deleted: true}, diverged); res.LogEnd != at || len(res.Lost) != 1 {
			t.Errorf("%s, another leader had begun: to %d, want %d; %+v", name, res.LogEnd, at, res.Lost)
		}
	}
}

// cutOff cuts a log of one segment at an offset, and puts what was after it into .deleted files of the directories.
func cutOff(t *testing.T, dir string, at int64, into ...string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(names) != 1 {
		t.Fatalf("%s: %v", dir, names)
	}
	raw, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	pos := int64(0)
	for pos < int64(len(raw)) {
		b, err := format.DecodeBatch(raw, pos)
		if err != nil || b.LastOffset >= at {
			break
		}
		pos = b.End()
	}
	rest := bytes.TrimRight(raw[pos:], "\x00") // what was made beforehand
	b, err := format.DecodeBatch(raw, pos)
	if err != nil {
		t.Fatal(err)
	}
	end := pos
	for b, err := b, error(nil); err == nil && end < pos+int64(len(rest)); b, err = format.DecodeBatch(raw, end) {
		end = b.End()
	}
	for _, d := range into {
		name := format.SegmentFileName(b.BaseOffset, format.KindLog) + ".deleted"
		if err := os.WriteFile(filepath.Join(d, name), raw[pos:end], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(names[0], raw[:pos], 0o644); err != nil {
		t.Fatal(err)
	}
}
