package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// lock is a data folder that is locked for this process. The kernel releases the lock
// when the process ends, however it ends. Both the folder and a file in it are locked.
// The lock on the folder holds for every path to it. The file has the process number for
// the error message.
type lock struct{ dir, file *os.File }

func takeLock(dir string) (_ *lock, err error) {
	l := &lock{}
	defer func() {
		if err != nil {
			_ = l.close()
		}
	}()
	if l.file, err = os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if l.dir, err = os.Open(dir); err != nil {
		return nil, err
	}
	for _, f := range []*os.File{l.file, l.dir} {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case errors.Is(err, syscall.EWOULDBLOCK):
			return nil, fmt.Errorf("%w by process %s", ErrLocked, holder(l.file))
		case err != nil:
			return nil, fmt.Errorf("lock: %w", err)
		}
	}
	// A full disk must not keep the daemon from starting, so the number may
	// be missing.
	if l.file.Truncate(0) == nil {
		_, _ = l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return l, nil
}

func (l *lock) close() error {
	var errs []error
	for _, f := range []*os.File{l.dir, l.file} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

func holder(f *os.File) string {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0)
	pid := strings.TrimSpace(string(b[:n]))
	if _, err := strconv.Atoi(pid); err != nil {
		return "unknown"
	}
	return pid
}
