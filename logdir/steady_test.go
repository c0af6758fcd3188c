package logdir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// What is done to a partition is done again for as long as files of it vanish, to what is there then.
func TestSteady(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "orders-0")
	if err := fixture.Copy(dir, "4.4.0/damage-base/plain/orders-0"); err != nil {
		t.Fatal(err)
	}
	set, err := Open([]string{parent}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := set.Partitions()[0]
	read := func() (err error) {
		for _, s := range p.Segments {
			err = errors.Join(err, s.Log.View(func([]byte) error { return nil }))
		}
		return err
	}
	segments, looks := len(p.Segments), 0
	move := func() {
		name := filepath.Join(dir, format.SegmentFileName(p.Segments[0].Base, format.KindLog))
		if err := os.Rename(name, name+".deleted"); err != nil {
			t.Fatal(err)
		}
	}
	move()
	err = p.Steady(func() error {
		if looks++; looks == 1 {
			move()
		}
		return read()
	})
	if err != nil || looks != 2 || len(p.Segments) != segments-2 {
		t.Errorf("%v after %d looks, %d segments of %d", err, looks, len(p.Segments), segments)
	}
	looks = 0
	err = p.Steady(func() error {
		looks++
		return ErrVanished
	})
	if looks != mostLooks || !errors.Is(err, ErrVanished) {
		t.Errorf("%v after %d looks", err, looks)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := p.Steady(read); !errors.Is(err, ErrGone) {
		t.Errorf("the directory is gone: %v", err)
	}
}

func TestHasFuture(t *testing.T) {
	d := LogDir{Subdirs: []string{"a-1", "a-1.00000000000000000000000000000001-delete",
		"a-1.00000000000000000000000000000002-future", "a-10.00000000000000000000000000000003-future", "a.b-1"}}
	for partition, want := range map[string]bool{"a-1": true, "a-10": true, "a-0": false, "a.b-1": false, "z-1": false} {
		if got := d.HasFuture(partition); got != want {
			t.Errorf("%s: %v", partition, got)
		}
	}
}
