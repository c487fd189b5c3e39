package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// reserveFile takes up room on the disk that is given up when there is no
// other, so that the ends of tasks can still be written.
const reserveFile = "reserve"

// Of the disk the reserve is at most this part.
const reservePart = 16

// reserveSize is what is kept in reserve of o's disk.
func (j *Journal) reserveSize() int64 {
	var s syscall.Statfs_t
	if syscall.Statfs(j.dir, &s) != nil {
		return 0
	}
	return min(j.reserve, int64(s.Blocks)*s.Bsize/reservePart)
}

// GiveUpReserve makes the room that is kept in reserve available and reports
// whether there was any. The same call may work then that found none.
func (j *Journal) GiveUpReserve() bool { return giveUpReserve(j.dir) }

// giveUpReserve hands the room to SQLite's log at once, before whoever fills the
// disk takes it too: commits go there, and need no other room. The log may be
// opened beside SQLite, which does not lock it; the database may not, as closing
// it would end SQLite's locks.
func giveUpReserve(dir string) bool {
	path := filepath.Join(dir, reserveFile)
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

// KeepReserve takes the reserve up again where there is room for it and as much
// beside it. It reports whether there is a reserve now; with none wanted, there
// always is.
func (j *Journal) KeepReserve() bool {
	size := j.reserveSize()
	path := filepath.Join(j.dir, reserveFile)
	info, err := os.Stat(path)
	switch {
	case j.reserve == 0:
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
