package format_test

import (
	"errors"
	"os"
	"path/filepath"
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
		_, err := format.DecodePartitionMetadata(raw)
		return err
	},
	format.KindQuorumState:                 func(raw []byte) error { _, err := format.DecodeQuorumState(raw); return err },
	format.KindRecoveryPointCheckpoint:     readOffsetCheckpoint,
	format.KindLogStartOffsetCheckpoint:    readOffsetCheckpoint,
	format.KindReplicationOffsetCheckpoint: readOffsetCheckpoint,
	format.KindCleanerOffsetCheckpoint:     readOffsetCheckpoint,
	format.KindMetaProperties: func(raw []byte) error {
		_, err := format.DecodeMetaProperties(raw)
		return err
	},
	format.KindCleanShutdown: func(raw []byte) error { _, err := format.DecodeCleanShutdown(raw); return err },
}

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

// TestKindTitlesWithArticle: a title can be put into a sentence.
func TestKindTitlesWithArticle(t *testing.T) {
	for kind, want := range map[format.Kind]string{format.KindLog: "a segment", format.KindOffsetIndex: "an offset index",
		format.KindTimeIndex: "a time index"} {
		if got := kind.ATitle(); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}
}

// TestKindsComplete holds every line of Kinds to the rule: it stands where its value is, and has a section in
// docs/format; what is not empty has a real file, a decoder that the fuzz target below feeds with it, and a description
// of each byte of it. TestEveryKind of dump and of explain hold their output to it.
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
	for i, k := range format.Kinds {
		if int(k.Kind) != i {
			t.Errorf("%s stands in line %d of Kinds, and is %d", k.ID, i, k.Kind)
		}
		name := k.Kind.OnDisk()
		if name != "" && !strings.Contains(docs.String(), "\n## `"+name+"`") {
			t.Errorf("docs/format has no section ## `%s`", name)
		}
	}
	fixture.EachKind(t, func(kind format.Kind, name string, raw []byte) {
		if decode := decoders[kind]; decode == nil {
			t.Errorf("%s has no decoder in the table that is fuzzed", kind)
		} else if err := decode(raw); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for l := range format.Describe(kind, raw, 0, format.NewRecordReader(1<<20, nil)) {
			if l.Role == format.RoleStray || l.Fault != nil {
				t.Errorf("%s: byte %d is not described: %v", name, l.Start, l.Fault)
			}
		}
	})
}

// FuzzKinds gives arbitrary bytes to the decoder of each kind: nothing panics, and the position of an error lies in the
// file, or at its end.
func FuzzKinds(f *testing.F) {
	fixture.EachKind(f, func(kind format.Kind, _ string, raw []byte) { f.Add(uint8(kind), raw) })
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
