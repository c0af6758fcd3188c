package logdir

import (
	"errors"
	"io"
	"io/fs"
	"sync"
	"syscall"
)

// Failure is an access that the disk did not grant.
type Failure struct {
	Path string
	Err  error // without the path
}

// mostFailures bounds how many are kept: a device that fails does so often.
const mostFailures = 100

// failures are those that were met and not asked for yet, one a path.
var failures struct {
	sync.Mutex
	list []Failure
	told map[string]bool
}

// Begin forgets the failures, and the archives, of whoever ran before in this process.
func Begin() {
	Failures()
	archives.Lock()
	archives.open = nil
	archives.Unlock()
}

// Failures are what the disk has not given since the last call, at most one for each path. An answer that was made from
// what was left is not complete, whoever made it.
func Failures() []Failure {
	failures.Lock()
	defer failures.Unlock()
	list := failures.list
	failures.list, failures.told = nil, nil
	return list
}

// failed notes an error of the disk. What is not there, or ends, is no failure.
func failed(path string, err error) {
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ENOTDIR) {
		return
	}
	failures.Lock()
	defer failures.Unlock()
	if failures.told[path] || len(failures.list) == mostFailures {
		return
	}
	if failures.told == nil {
		failures.told = map[string]bool{}
	}
	failures.told[path] = true
	failures.list = append(failures.list, Failure{path, bareError(err)})
}

// failedLook is failed for a look at what need not be anybody's: what others may not see is no failure of the disk.
func failedLook(path string, err error) {
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.ENAMETOOLONG) && !errors.Is(err, syscall.ELOOP) &&
		!errors.Is(err, fs.ErrInvalid) {
		failed(path, err)
	}
}
