package logdir

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kseg/format"
)

// remoteIndexes makes the files of a cache of remote segments' indexes operands of their own: they belong to no log
// that is there. It is false for another directory.
func (o *opener) remoteIndexes(arg string, entries []fs.DirEntry) bool {
	path, err := filepath.Abs(arg)
	if err != nil || !format.SkippedDir(filepath.Base(path)) {
		return false
	}
	var files []*File
	for _, entry := range entries {
		name := filepath.Join(arg, entry.Name())
		info, err := stat(name)
		if err != nil {
			o.problem(name, statError(name, err))
			continue
		}
		if f := newFile(name, name, entry.Name(), info, o.opts.Gentle); f.mode.IsRegular() && f.Kind() != format.KindUnknown {
			f.takeRemoteBase()
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b *File) int { return a.Name.Compare(b.Name) })
	for _, f := range files {
		o.set.Operands = append(o.set.Operands, Operand{Arg: f.Path, File: f})
	}
	return len(files) > 0
}

// takeRemoteBase takes the base offset from a name as RemoteLogIndexCache gives it: <base offset>_<segment's
// id>.<extension>.
func (f *File) takeRemoteBase() {
	base, rest, ok := strings.Cut(f.Name.Plain(), "_")
	id, _, _ := strings.Cut(rest, ".")
	if _, err := format.ParseUUID(id); !ok || err != nil || f.Name.HasBase || !f.Kind().HasOffset() {
		return
	}
	if n, err := strconv.ParseInt(base, 10, 64); err == nil {
		f.Name.Base, f.Name.HasBase = n, true
	}
}
