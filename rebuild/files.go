package rebuild

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"kseg/format"
	"kseg/logdir"
)

// Inputs are the directories that are read, in which nothing may be written.
type Inputs []inputDir

type inputDir struct {
	display string
	real    string // absolute and without links
	info    fs.FileInfo
}

// InputsOf are the directories that the operands lead to: with a partition also the log directory around it.
func InputsOf(set *logdir.Set) (Inputs, error) {
	var all Inputs
	for _, o := range set.Operands {
		var err error
		switch {
		case o.LogDir != nil:
			err = all.add(o.LogDir.Path, o.LogDir.Display)
			for _, p := range o.LogDir.Partitions {
				if bad := all.add(p.Path, p.Display); !errors.Is(bad, fs.ErrNotExist) { // it may have been deleted
					err = errors.Join(err, bad)
				}
			}
		case o.Partition != nil:
			err = all.addWithParent(o.Partition.Path, o.Partition.Display, o.Partition.Parent)
		case o.File != nil && o.Err == nil:
			err = all.addWithParent(filepath.Dir(o.File.Path), filepath.Dir(o.File.Display), o.File.Parent())
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (all *Inputs) add(path, display string) error {
	real, err := filepath.EvalSymlinks(absolute(path))
	if err != nil {
		return fmt.Errorf("%s: %w", display, bare(err))
	}
	info, err := os.Stat(real)
	if err != nil {
		return fmt.Errorf("%s: %w", display, bare(err))
	}
	*all = append(*all, inputDir{display, real, info})
	return nil
}

func (all *Inputs) addWithParent(path, display string, parent *logdir.LogDir) error {
	err := all.add(path, display)
	if parent != nil {
		err = errors.Join(err, all.add(parent.Path, parent.Display))
	}
	return err
}

// Refuse refuses a folder that lies in an input or around one, through whatever links. The error names the folder after
// the flag that gave it, and wraps logdir.ErrUsage.
func (all Inputs) Refuse(flag, dir string) error {
	real, err := realPath(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, bare(err))
	}
	for _, in := range all {
		if lies(real, in.info) {
			return fmt.Errorf("%w: %s %s is in %s, which is read; nothing is ever written there, so name another folder",
				logdir.ErrUsage, flag, dir, in.display)
		}
		if info, err := os.Stat(real); err == nil && lies(in.real, info) {
			return fmt.Errorf("%w: %s, which is read, is in %s %s; name another folder", logdir.ErrUsage, in.display, flag,
				dir)
		}
	}
	return nil
}

func (r *rebuilder) checkFolder(dir string) error { return r.inputs.Refuse("--rebuild", dir) }

// lies reports whether a path, absolute and without links, is the directory or lies in it. Directories are told by what
// they are, not by their names: the same one may be mounted twice.
func lies(path string, dir fs.FileInfo) bool {
	for {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, dir) {
			return true
		}
		up := filepath.Dir(path)
		if up == path {
			return false
		}
		path = up
	}
}

// realPath is the absolute path without links; what is not there yet has none.
func realPath(path string) (string, error) {
	rest := ""
	for p := absolute(path); ; p = filepath.Dir(p) {
		_, err := os.Lstat(p)
		if err == nil {
			real, err := filepath.EvalSymlinks(p)
			return filepath.Join(real, rest), err
		}
		if !errors.Is(err, fs.ErrNotExist) || p == filepath.Dir(p) {
			return "", err
		}
		rest = filepath.Join(filepath.Base(p), rest)
	}
}

// absolute is the path from the root on. Where the working directory is gone it stays as it is, and opening it will
// fail.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// bare is an error without the path, which the sentence around it names.
func bare(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}

// folder is the folder for the files of one partition. Files of several segments are written at a time, since most
// of the time is spent waiting for each of them to be on disk.
type folder struct {
	path    string
	names   map[string]bool // of the files of this run
	queue   []*pending
	bytes   int  // in the queue
	written bool // some file is not one that was there before
}

// pending is the writing of one segment's files.
type pending struct {
	res   *Segment
	bytes int
	wait  sync.WaitGroup
	errs  []error // of each file
}

// How much may be written at a time: segments, and bytes.
const (
	maxQueue      = 16
	maxQueueBytes = 8 << 20
)

// folder makes the folder of a partition.
func (r *rebuilder) newFolder(name string) (*folder, error) {
	path := filepath.Join(r.opts.Dir, name)
	if err := r.checkFolder(path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(absolute(path), 0o777); err != nil {
		return nil, fmt.Errorf("%s: cannot be made: %w", path, bare(err))
	}
	return &folder{path: path, names: map[string]bool{}}, nil
}

// newFile is a file that is to be written.
type newFile struct {
	name string
	data []byte
}

// write starts to write the files of a segment, unless one of them is there already with other content.
func (p *partition) write(seg *logdir.Segment, x *Recovery, res *Segment) {
	w := &pending{res: res}
	p.out.queue = append(p.out.queue, w)
	if res.Outcome == Failed {
		return
	}
	files := p.files(seg, x, res)
	for _, f := range files {
		there, err := p.out.present(f)
		if err != nil {
			res.Outcome, res.Loss, res.Reason, res.Files = Failed, NoLoss, err.Error(), nil
			return
		}
		res.Files = append(res.Files, File{Path: filepath.Join(p.out.path, f.name), Bytes: int64(len(f.data)),
			Written: !there})
	}
	w.errs = make([]error, len(files))
	for i, f := range files {
		if res.Files[i].Written {
			p.out.written = true
			w.bytes += len(f.data)
			w.wait.Go(func() { w.errs[i] = p.out.write(f) })
		}
	}
	p.out.bytes += w.bytes
}

// finish waits until what is being written is no more than so many segments and bytes, and hands on the results in
// order.
func (p *partition) finish(segments, bytes int) error {
	d := p.out
	for len(d.queue) > segments || d.bytes > bytes {
		w := d.queue[0]
		d.queue, d.bytes = d.queue[1:], d.bytes-w.bytes
		w.wait.Wait()
		err := errors.Join(w.errs...)
		if err == nil {
			err = p.emit(w.res)
		}
		if err != nil {
			for _, w := range d.queue {
				w.wait.Wait()
			}
			d.queue = nil
			return err
		}
	}
	return nil
}

// files are those that recovery leaves of a segment, the log aside.
func (p *partition) files(seg *logdir.Segment, x *Recovery, res *Segment) []newFile {
	var files []newFile
	add := func(offset int64, kind format.Kind, data []byte) {
		// Two segments may give the same snapshot.
		if name := format.SegmentFileName(offset, kind); !p.out.names[name] {
			p.out.names[name] = true
			files = append(files, newFile{name, data})
		}
	}
	res.IndexEntries, res.TimeIndexEntries = x.Index.OffsetIndex().Len(), x.Index.TimeIndex().Len()
	res.TxnIndexEntries = format.NewTxnIndex(x.Txns.Bytes()).Len()
	add(seg.Base, format.KindOffsetIndex, x.Index.OffsetIndexBytes())
	add(seg.Base, format.KindTimeIndex, x.Index.TimeIndexBytes())
	if res.TxnIndexEntries > 0 || seg.TxnIndex != nil {
		add(seg.Base, format.KindTxnIndex, x.Txns.Bytes())
	}
	if p.opts.Snapshots && x.early != nil {
		add(seg.Base, format.KindProducerSnapshot, x.early)
	}
	// A snapshot that is neither at the base of a segment nor at the end of the log would be deleted at once.
	m := x.Producers
	atEnd := seg.Next == nil || res.Outcome == Cut || seg.Next.Base == m.MapEnd
	if p.opts.Snapshots && m.MapEnd > m.SnapEnd && res.Outcome != Emptied && atEnd {
		add(m.MapEnd, format.KindProducerSnapshot, format.AppendProducerSnapshot(nil, m.Entries()))
	}
	return files
}

// present reports whether a file is there already. The error is for one that is not the same.
func (d *folder) present(f newFile) (bool, error) {
	path := filepath.Join(d.path, f.name)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil && info.Mode().IsRegular() && info.Size() == int64(len(f.data)) {
		if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, f.data) {
			return true, nil
		}
	}
	return true, fmt.Errorf("%s is there already and differs from what was rebuilt; it stays as it was (take it away, "+
		"or name another folder)", path)
}

// write writes a file under another name, brings it to disk, and gives it its name.
func (d *folder) write(f newFile) error {
	path := filepath.Join(d.path, f.name)
	half := path + "." + strconv.Itoa(os.Getpid()) + ".tmp"
	err := WriteSynced(half, f.data)
	if err == nil {
		err = os.Rename(half, path)
	}
	if err != nil {
		_ = os.Remove(half) // it may never have been made
		return fmt.Errorf("%s: cannot be written: %w", path, bare(err))
	}
	return nil
}

// WriteSynced makes a file, which must not be there, and brings it to disk.
func WriteSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// close brings the names of the files to disk.
func (d *folder) close() error {
	if !d.written {
		return nil
	}
	f, err := os.Open(d.path)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("%s: cannot be brought to disk: %w", d.path, bare(err))
	}
	return nil
}
