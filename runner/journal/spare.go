package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// spareFile names a file that occupies room on the disk. The room is released when the
// disk is full, so that the ends of tasks can still be written. The setting, and the file
// in older data folders, have the name reserve.
const spareFile = "reserve"

// sparePart limits the spare room to 1/sparePart of the disk.
const sparePart = 16

// spareSize returns the size of the spare room on j's disk, in bytes.
func (j *Journal) spareSize() int64 {
	var s syscall.Statfs_t
	if syscall.Statfs(j.dir, &s) != nil {
		return 0
	}
	return min(j.spare, int64(s.Blocks)*s.Bsize/sparePart)
}

// GiveUpSpare makes the spare room available and reports whether there was any.
// If so, a call that found no room may work now.
func (j *Journal) GiveUpSpare() bool { return giveUpSpare(j.dir) }

// giveUpSpare gives the spare room to SQLite's log at once, before another program takes
// it. Commits write to the log, and need no other room. The log may be opened beside
// SQLite, which does not lock the log. The database file must not be opened, because
// closing it would end SQLite's locks.
func giveUpSpare(dir string) bool {
	path := filepath.Join(dir, spareFile)
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 || os.Remove(path) != nil {
		return false
	}
	if log, err := os.OpenFile(filepath.Join(dir, dataFile+"-wal"), os.O_WRONLY, 0); err == nil {
		if has, err := log.Stat(); err == nil {
			const keepSize = 1 // FALLOC_FL_KEEP_SIZE
			for room := info.Size(); room >= 64<<10 && syscall.Fallocate(int(log.Fd()), keepSize, has.Size(), room) != nil; {
				room /= 2
			}
		}
		_ = log.Close()
	}
	return true
}

// KeepSpare allocates the spare room again if the disk has room for twice as much. It
// reports whether there is spare room now, or none is configured.
func (j *Journal) KeepSpare() bool {
	size := j.spareSize()
	path := filepath.Join(j.dir, spareFile)
	info, err := os.Stat(path)
	switch {
	case j.spare == 0:
		return errors.Is(err, fs.ErrNotExist) || os.Remove(path) == nil
	case err == nil && info.Size() == size:
		return true
	}
	_ = os.Remove(path)
	var s syscall.Statfs_t
	if syscall.Statfs(j.dir, &s) != nil || int64(s.Bavail)*s.Bsize < 2*size {
		return false
	}
	if err := allocate(path, size); err != nil {
		_ = os.Remove(path)
		return false
	}
	return true
}

func allocate(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err = syscall.Fallocate(int(f.Fd()), 0, 0, size); errors.Is(err, syscall.EOPNOTSUPP) {
		for block := make([]byte, 64<<10); err != nil && size > 0; size -= int64(len(block)) {
			if _, werr := f.Write(block[:min(size, int64(len(block)))]); werr != nil {
				return errors.Join(werr, f.Close())
			}
		}
		err = nil
	}
	return errors.Join(err, f.Close())
}
