package state

import (
	"os"
	"path/filepath"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
)

func openDir(t *testing.T, path string) *logdir.LogDir {
	t.Helper()
	set, err := logdir.Open([]string{path}, logdir.Options{})
	if err != nil || len(set.LogDirs()) != 1 {
		t.Fatalf("%s: %v", path, err)
	}
	return set.LogDirs()[0]
}

func TestDir(t *testing.T) {
	path := fixture.Dir(t, "4.4.0/logdirs/clean/data1")
	prices := TopicPartition{"prices", 0}
	d := ReadDir(openDir(t, path))
	if end, ok := d.Offset(format.KindRecoveryPointCheckpoint, prices); !ok || end != 109 {
		t.Errorf("recovery point %d, %v", end, ok)
	}
	if _, ok := d.Offset(format.KindRecoveryPointCheckpoint, TopicPartition{"prices", 7}); ok {
		t.Error("a partition that is not there has a recovery point")
	}
	if d.Marker == nil || d.MetaRaw == nil || d.MetaErr != nil || !d.Meta.HasDirectoryID {
		t.Errorf("marker %v, meta %v %v", d.Marker, d.Meta, d.MetaErr)
	}
	if problems := d.Problems(append(CheckpointKinds, format.KindMetaProperties)...); problems != nil {
		t.Errorf("%v", problems)
	}
	var none *Dir
	if _, ok := none.Offset(format.KindRecoveryPointCheckpoint, prices); ok {
		t.Error("no directory has a recovery point")
	}
}

func TestDirThatCannotBeRead(t *testing.T) {
	path := fixture.Dir(t, "4.4.0/logdirs/clean/data1")
	recovery := format.KindRecoveryPointCheckpoint.Info().Name
	if err := os.WriteFile(filepath.Join(path, recovery), []byte("0\n2\nprices 0 109\nprices 1 x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "meta.properties"), []byte("version=7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d := ReadDir(openDir(t, path))
	if c := d.Checkpoint(format.KindRecoveryPointCheckpoint); format.Throws(c.Err) != format.NumberFormatException {
		t.Errorf("%v", c.Err)
	}
	if end, ok := d.Offset(format.KindRecoveryPointCheckpoint, TopicPartition{"prices", 0}); !ok || end != 109 {
		t.Errorf("what can be read is %d, %v", end, ok)
	}
	if problems := d.Problems(format.KindRecoveryPointCheckpoint, format.KindMetaProperties); len(problems) != 2 {
		t.Errorf("%v", problems)
	}
}

// A log never ends before its start, though a checkpoint puts that after all that is there: a broker begins it anew.
func TestBoundsOfALogThatBeginsAfterItsEnd(t *testing.T) {
	path := fixture.Dir(t, "4.4.0/logdirs/clean/data1")
	for start, want := range map[string]LogBounds{"9": {9, 109}, "109": {109, 109}, "200": {200, 200}} {
		if err := os.WriteFile(filepath.Join(path, "log-start-offset-checkpoint"), []byte("0\n1\nprices 0 "+start+"\n"),
			0o644); err != nil {
			t.Fatal(err)
		}
		dir := openDir(t, path)
		for _, p := range dir.Partitions {
			if p.Topic != "prices" {
				continue
			}
			if got, known, err := Bounds(p, ReadDir(dir)); err != nil || !known || got != want {
				t.Errorf("%s: %+v, %v, %v", start, got, known, err)
			}
		}
	}
}
