package format_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// decoders reads everything of a file of each kind, and returns the first error.
var decoders = map[format.Kind]func(raw []byte) error{
	format.KindLog:                   scanAll,
	format.KindCheckpoint:            scanAll,
	format.KindOffsetIndex:           readOffsetIndex,
	format.KindTimeIndex:             readTimeIndex,
	format.KindTxnIndex:              readTxnIndex,
	format.KindProducerSnapshot:      readProducerSnapshot,
	format.KindLeaderEpochCheckpoint: readLeaderEpochs,
	format.KindPartitionMetadata: func(raw []byte) error {
		_,
			err := format.DecodePartitionMetadata(raw)
		return err
	},
	format.KindQuorumState:                 func(raw []byte) error { _, err := format.DecodeQuorumState(raw); return err },
	format.KindRecoveryPointCheckpoint:     readOffsetCheckpoint,
	format.KindLogStartOffsetCheckpoint:    readOffsetCheckpoint,
	format.KindReplicationOffsetCheckpoint: readOffsetCheckpoint,
	format.KindCleanerOffsetCheckpoint:     readOffsetCheckpoint,
	format.KindMetaProperties: func(raw []byte) error {
		_,
			err := format.DecodeMetaProperties(raw)
		return err
	},
	format.KindCleanShutdown: func(raw []byte) error { _, err := format.DecodeCleanShutdown(raw); return err },
}

// contentless are the kinds whose files are empty: there is nothing to decode, and nothing to keep as a fixture.
var contentless = []format.Kind{format.KindLock}

func scanAll(raw []byte) error {
	s := format.NewScanner(raw, 0, -1)
	for s.Next() {
		if h := s.Hole(); h != nil {
			return errors.New(h.Kind.String())
		}
	}
	return nil
}

func readOffsetIndex(raw []byte) error {
	x := format.NewOffsetIndex(raw, 1<<40)
	for i := range x.Len() {
		e := x.Entry(i)
		x.Lookup(e.Offset)
	}
	x.Logical().Lookup(1 << 41)
	return nil
}

func readTimeIndex(raw []byte) error {
	x := format.NewTimeIndex(raw, 1<<40)
	for i := range x.Len() {
		e := x.Entry(i)
		x.Lookup(e.TimestampMs)
	}
	x.Logical().Lookup(1 << 41)
	return nil
}

func readTxnIndex(raw []byte) error {
	x := format.NewTxnIndex(raw)
	for i := range x.Len() {
		x.Entry(i)
	}
	_, err := x.Check()
	return err
}

func readProducerSnapshot(raw []byte) error {
	s, err := format.DecodeProducerSnapshot(raw)
	for i := range s.Len() {
		s.Entry(i)
	}
	return err
}

func readLeaderEpochs(raw []byte) error {
	e, err := format.DecodeLeaderEpochs(raw)
	e.Loaded()
	e.OutOfOrder()
	return err
}

func readOffsetCheckpoint(raw []byte) error {
	_, err := format.DecodeOffsetCheckpoint(raw)
	return err
}

// fixtureOf is a file of a kind in testdata/logdirs that is not empty, and small if there is such a one.
func fixtureOf(t testing.TB, kind format.Kind) (raw []byte, ok bool) {
	t.Helper()
	for _, name := range fixture.Files(t, onDisk(kind.Info())) {
		n := format.ParseFileName(filepath.Base(name))
		if n.Kind != kind || n.Leftover() {
			continue
		}
		if raw = fixture.Data(t, name); len(raw) > 0 && len(raw) <= 4<<10 {
			break
		}
	}
	return raw, len(raw) > 0
}

// onDisk is the fixed name of a kind, or the end of its names.
func onDisk(k format.KindInfo) string {
	if k.Ext != "" {
		return "." + k.Ext
	}
	return k.Name
}

// TestKindTitlesWithArticle: a title can be put into a sentence.
func TestKindTitlesWithArticle(t *testing.T) {
	for kind, want := range map[format.Kind]string{format.KindLog: "a segment", format.KindOffsetIndex: "an offset index",
		format.KindTimeIndex: "a time index"} {
		if got := kind.ATitle(); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}
}

// TestKindsComplete holds every line of Kinds to the rule: a section in docs/format, a real file, a decoder that the
// fuzz target below feeds with it.
func TestKindsComplete(t *testing.T) {
	pages, err := filepath.Glob("../docs/format/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var docs strings.Builder
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		docs.WriteString("\n" + string(text))
	}
	for _, k := range format.Kinds[1:] {
		name := onDisk(k)
		if !strings.Contains(docs.String(), "\n## `"+name+"`") {
			t.Errorf("docs/format has no section ## `%s`", name)
		}
		if slices.Contains(contentless, k.Kind) {
			continue
		}
		decode := decoders[k.Kind]
		if decode == nil {
			t.Errorf("%s has no decoder in the table that is fuzzed", k.ID)
			continue
		}
		raw, ok := fixtureOf(t, k.Kind)
		if !ok {
			t.Errorf("testdata/logdirs has no %s", name)
			continue
		}
		if err := decode(raw); err != nil {
			t.Errorf("a real %s: %v", name, err)
		}
	}
}

// FuzzKinds gives arbitrary bytes to the decoder of each kind: nothing panics, and the position of an error lies in the
// file, or at its end.
func FuzzKinds(f *testing.F) {
	for kind := range decoders {
		if raw, ok := fixtureOf(f, kind); ok {
			f.Add(uint8(kind), raw)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, raw []byte) {
		decode := decoders[format.Kind(kind)]
		if decode == nil || len(raw) > 1<<20 {
			return
		}
		err := decode(raw)
		var at *format.Error
		if errors.As(err, &at) && (at.Pos < 0 || at.Pos > int64(len(raw))) {
			t.Errorf("%s: an error at byte %d of %d: %v", format.Kind(kind), at.Pos, len(raw), err)
		}
	})
}
