package logdir

import "golang.org/x/sys/unix"

// Space is how much room the file system has that a directory lies on, in bytes: free for all but root, and in all.
type Space struct{ Free, Total int64 }

// SpaceOf asks the file system; false if it does not say.
func SpaceOf(path string) (Space, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Space{}, false
	}
	unit := int64(st.Bsize)
	return Space{Free: int64(st.Bavail) * unit, Total: int64(st.Blocks) * unit}, true
}
