package logdir

import (
	"archive/tar"
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"kseg/format"
)

// archive is a tar file whose members are read where they lie in it, as if it were a directory with its name. What is
// needed of one that comes compressed or on stdin is kept in a temporary file without a name, in $TMPDIR.
type archive struct {
	root    string // the operand
	tape    *tape
	spool   spool
	skim    func() func([]byte) []byte
	members map[string]*member // by their paths below root, cleaned; "." is the root
	passed  []error            // why members were passed over, at most mostPassed
}

const (
	// mostPassed bounds how many members that are passed over are named.
	mostPassed = 20
	// deepest bounds the directories above a member: each has its own entry here.
	deepest = 64
	// mostSparse bounds what a sparse member claims to be: no file of Kafka's is as long.
	mostSparse = 4 << 30
)

// pass notes that a member is passed over.
func (a *archive) pass(name, why string) {
	if len(a.passed) < mostPassed {
		a.passed = append(a.passed, fmt.Errorf("%s: its member %q is passed over: %s", a.root, name, why))
	}
}

// member is a file or directory of an archive.
type member struct {
	name    string
	mode    fs.FileMode
	mod     time.Time
	file    *os.File // the archive, or the spool
	origin  int64    // where its bytes begin in file
	size    int64
	pieces  int64  // the bytes in file, if those are pieces of it; else 0
	number  uint64 // tells it from the others
	entries []fs.DirEntry
}

// memberInfo makes a member look like a file on disk.
type memberInfo struct{ *member }

func (i memberInfo) Name() string       { return i.name }
func (i memberInfo) Size() int64        { return i.size }
func (i memberInfo) Mode() fs.FileMode  { return i.mode }
func (i memberInfo) ModTime() time.Time { return i.mod }
func (i memberInfo) IsDir() bool        { return i.mode.IsDir() }

func (i memberInfo) Sys() any { return nil }

// archives are those that were opened.
var archives struct {
	sync.RWMutex
	open []*archive
}

// archived finds the member that a path leads to; ok is false if the path is not one into an archive.
func archived(p string) (a *archive, m *member, ok bool) {
	archives.RLock()
	defer archives.RUnlock()
	for _, a := range archives.open {
		rest, inside := strings.CutPrefix(p, a.root)
		if inside && (rest == "" || os.IsPathSeparator(rest[0])) {
			return a, a.members[path.Clean(filepath.ToSlash(rest[min(len(rest), 1):]))], true
		}
	}
	return nil, nil, false
}

// tarMagic stands at byte 257 of each header.
const tarMagic, tarMagicAt = "ustar", 257

// tarBlock is the length to which members are filled up. Two blocks of zeros are the end mark.
const tarBlock = 512

// looksLikeTar reports whether head begins an archive.
func looksLikeTar(head []byte) bool {
	return len(head) >= tarMagicAt+len(tarMagic) && string(head[tarMagicAt:tarMagicAt+len(tarMagic)]) == tarMagic
}

// openArchive opens the archive at a path, or the one that comes from stdin, and makes its members known under root.
// It is nil if the bytes are no archive, compressed or not.
func openArchive(root string, file *os.File, skim func() func([]byte) []byte) (*archive, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(file, 1<<16)
	head, _ := in.Peek(headBytes) // what cannot be read shows itself again
	plain, compressed, err := format.PlainStream(head, in)
	if err != nil {
		return nil, nil
	}
	if compressed {
		in = bufio.NewReaderSize(plain, 1<<16)
		head, err = in.Peek(headBytes)
		if len(head) == 0 && err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("it is compressed, and cannot be decompressed: %w", err)
		}
	}
	if !looksLikeTar(head) {
		return nil, nil
	}
	a := &archive{root: root, tape: &tape{in: in}, skim: skim, members: map[string]*member{}}
	if !compressed && info.Mode().IsRegular() {
		a.tape = &tape{file: file, size: info.Size()}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
	}
	return a, a.list()
}

// list finds the members. Of a file it reads only the headers.
func (a *archive) list() error {
	a.dir(".")
	err := a.readMembers()
	for name, m := range a.members {
		if name != "." {
			parent := a.members[path.Dir(name)]
			parent.entries = append(parent.entries, fs.FileInfoToDirEntry(memberInfo{m}))
		}
	}
	for _, m := range a.members {
		slices.SortFunc(m.entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	return cmp.Or(err, a.spool.flush())
}

// readMembers takes up all members. The error says where the archive is cut off.
func (a *archive) readMembers() error {
	for {
		if err := a.readUntilMark(); err != nil {
			return err
		}
		switch head, err := a.tape.skipZeros(); {
		case err != nil || head == nil:
			return err
		case !looksLikeTar(head):
			return fmt.Errorf("from byte %d on, after its end mark, something follows that is no member of an archive",
				a.tape.at())
		}
		// Archives were put together: they are read as tar --ignore-zeros does.
	}
}

// readUntilMark takes up the members that stand before the next end mark.
func (a *archive) readUntilMark() error {
	end := a.tape.at()
	for r := tar.NewReader(a.tape.reader()); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("the archive is cut off or damaged after %d members: %w", len(a.members)-1, bareError(err))
		}
		end = a.tape.at()
		sparse := isSparse(h)
		if !sparse && h.Typeflag == tar.TypeReg {
			end += h.Size
		}
		if a.tape.file != nil && end > a.tape.size {
			return fmt.Errorf("the archive is cut off in its member %q", h.Name)
		}
		if err := a.add(h, r); err != nil {
			return fmt.Errorf("member %q: %w", h.Name, bareError(err))
		}
		if sparse {
			end = a.tape.at()
		}
	}
	if a.tape.at() < (end+tarBlock-1)/tarBlock*tarBlock+2*tarBlock {
		return fmt.Errorf("the archive ends without its end mark, after %d members: it was cut off, or is still written",
			len(a.members)-1)
	}
	return nil
}

// add takes a member up: a later one of the same name replaces an earlier.
func (a *archive) add(h *tar.Header, r io.Reader) error {
	name := path.Clean(strings.TrimLeft(h.Name, "/"))
	switch {
	case name == ".":
		return nil
	case name == ".." || strings.HasPrefix(name, "../"):
		a.pass(h.Name, "it leads out of the archive")
		return nil
	case strings.Count(name, "/") > deepest:
		a.pass(h.Name[:min(len(h.Name), 40)]+"...", fmt.Sprintf("it is in more than %d directories", deepest))
		return nil
	case h.Typeflag == tar.TypeDir:
		a.dir(name)
		return nil
	}
	linked, why := a.content(h)
	if why != "" {
		if kafkaName(path.Base(name)) {
			a.pass(h.Name, why)
		}
		return nil
	}
	if old := a.members[name]; old != nil && old.mode.IsDir() {
		a.pass(h.Name, "it is a directory, too")
		return nil
	}
	if !a.dir(path.Dir(name)) {
		return nil
	}
	m := &member{name: path.Base(name), mode: 0o444, mod: h.ModTime, size: h.Size, number: uint64(len(a.members)) + 1}
	switch {
	case linked != nil:
		*m = *linked
		m.name = path.Base(name)
	case a.tape.file != nil && !isSparse(h):
		m.file, m.origin = a.tape.file, a.tape.at()
	default:
		kept := h.Size
		if !kafkaName(m.name) {
			kept = min(kept, headBytes) // nothing asks for more
		}
		if err := a.spool.take(m, r, kept, a.skimmer(name)); err != nil {
			return err
		}
	}
	a.members[name] = m
	return nil
}

// skimmer is what cuts the batches of a member short, nil if all of it is needed.
func (a *archive) skimmer(name string) func([]byte) []byte {
	dir, partition := format.ParsePartitionDir(path.Base(path.Dir(name)))
	file := format.ParseFileName(path.Base(name))
	if a.tape.file != nil || !partition || strings.HasPrefix(dir.Topic, "__") || file.Kind != format.KindLog ||
		file.Leftover() || a.skim == nil {
		return nil
	}
	return a.skim()
}

// content is the member that a hard link is another name of; why says why what is no directory has no bytes to read.
func (a *archive) content(h *tar.Header) (linked *member, why string) {
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		if isSparse(h) && h.Size > mostSparse {
			return nil, fmt.Sprintf("it claims %d bytes, most of them holes; no file of Kafka's is as long", h.Size)
		}
		return nil, ""
	case tar.TypeLink:
		m := a.members[path.Clean(strings.TrimLeft(h.Linkname, "/"))]
		if m == nil || m.mode.IsDir() {
			return nil, fmt.Sprintf("it is a link to %q, which is not before it in the archive", h.Linkname)
		}
		return m, ""
	case tar.TypeSymlink:
		return nil, fmt.Sprintf("it is a link to %q; tar --dereference stores what a link leads to", h.Linkname)
	}
	return nil, "it is a device or a pipe, not a file"
}

// kafkaName reports whether a file or directory of that name would be looked at.
func kafkaName(name string) bool {
	_, partition := format.ParsePartitionDir(name)
	return partition || format.ParseFileName(name).Kind != format.KindUnknown
}

// isSparse reports whether a member leaves out its zeros, as tar --sparse writes them.
func isSparse(h *tar.Header) bool {
	if h.Typeflag == tar.TypeGNUSparse {
		return true
	}
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// dir makes a directory and those above it, if they are not there. It is false where a file lies on the way.
func (a *archive) dir(name string) bool {
	if m := a.members[name]; m != nil {
		if !m.mode.IsDir() {
			a.pass(name, "it is a file, and a directory too")
		}
		return m.mode.IsDir()
	}
	if name != "." && !a.dir(path.Dir(name)) {
		return false
	}
	a.members[name] = &member{name: path.Base(name), mode: fs.ModeDir | 0o555, number: uint64(len(a.members)) + 1}
	return true
}

// roots are the directories of the archive that hold Kafka's files, none inside another.
func (a *archive) roots() []string {
	var found []string
	var look func(name string)
	look = func(name string) {
		at := filepath.Join(a.root, filepath.FromSlash(name))
		entries := a.members[name].entries
		if classifyDir(at, entries, lookDepth) != isForeign {
			found = append(found, at)
			return
		}
		for _, e := range entries {
			if e.IsDir() {
				look(path.Join(name, e.Name()))
			}
		}
	}
	look(".")
	return found
}

// Stdin is the operand that stands for an archive on standard input.
const Stdin = "-"

// archiveAbove opens the archive that a path leads into, if it does.
func (o *opener) archiveAbove(arg string) {
	for up := filepath.Dir(arg); up != filepath.Dir(up); up = filepath.Dir(up) {
		info, err := stat(up)
		if err != nil {
			continue
		}
		if info.Mode().IsRegular() {
			_, _ = o.archive(up) // what is wrong with it shows itself: the path is not found
		}
		return
	}
}

// archive opens the operand if it is an archive, and gives the directories in it that hold Kafka's files: none, but not
// nil, if there are none. What the archive is cut off before is listed.
func (o *opener) archive(arg string) ([]string, error) {
	if _, _, ok := archived(arg); ok || arg != Stdin &&
		format.ParseFileName(filepath.Base(arg)).Kind != format.KindUnknown || o.opts.BaseOffset != nil {
		return nil, nil
	}
	file := os.Stdin
	if arg != Stdin {
		info, err := stat(arg)
		if err != nil || !info.Mode().IsRegular() {
			return nil, nil
		}
		opened, err := openAt(arg)
		if err != nil {
			return nil, nil
		}
		file = opened.File
	}
	a, err := openArchive(arg, file, o.opts.Skim)
	if a == nil {
		file.Close()
		if err == nil && arg == Stdin {
			err = errors.New("what comes on stdin is no tar archive, compressed or not")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", arg, err)
		}
		return nil, nil
	}
	archives.Lock()
	archives.open = append(archives.open, a)
	archives.Unlock()
	for _, err := range a.passed {
		o.problem(arg, err)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", arg, err)
	}
	return append([]string{}, a.roots()...), err
}

// members takes up the directories of an archive as operands.
func (o *opener) members(arg string, roots []string, err error) error {
	if err == nil && len(roots) == 0 {
		err = &ForeignError{Display: arg, Looks: "an archive without files of Kafka's"}
	}
	if err != nil {
		o.problem(arg, err)
		o.set.Operands = append(o.set.Operands, Operand{Arg: arg, Err: err})
	}
	for _, root := range roots {
		if err := o.operand(root); err != nil {
			return err
		}
	}
	return nil
}
