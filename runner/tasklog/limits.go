package tasklog

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Limits bound the output that is kept, in bytes on disk. 0 means the default.
type Limits struct {
	// Attempt limits the stored output of one attempt. The default is [DefaultLimit], the
	// minimum [MinLimit].
	Attempt int64
	// Task bounds the attempts of one task together. The default is four times Attempt.
	Task int64
	// User bounds the tasks of one user together. The default is half of Total.
	User int64
	// Total bounds all output. The default is a tenth of the disk.
	Total int64
	// Free stays free on the disk, even if others fill the disk. The default is a
	// twentieth of the disk, at least 64 MiB and at most 1 GiB, but never more than a
	// quarter of the disk.
	Free int64
}

const (
	mib = 1 << 20
	gib = 1 << 30
)

// on fills in the limits for a disk of the given size in bytes, or 0 if unknown.
func (l Limits) on(disk int64) Limits {
	if l.Attempt == 0 {
		l.Attempt = DefaultLimit
	}
	if l.Total == 0 {
		l.Total = max(disk/10, MinLimit)
		if disk == 0 {
			l.Total = 16 * gib
		}
	}
	if l.User == 0 {
		l.User = l.Total / 2
	}
	if l.Task == 0 {
		l.Task = 4 * l.Attempt
	}
	if l.Free == 0 {
		l.Free = min(max(disk/20, 64*mib), gib, disk/4)
	}
	l.User = max(min(l.User, l.Total), MinLimit)
	l.Task = max(min(l.Task, l.User), MinLimit)
	l.Attempt = max(min(l.Attempt, l.Task), MinLimit)
	return l
}

// room returns the size of a folder's disk and the space on it that this process may use,
// in bytes.
func room(dir string) (size, free int64, err error) {
	var fs unix.Statfs_t
	for {
		err = unix.Statfs(dir, &fs)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return int64(fs.Blocks) * fs.Bsize, int64(fs.Bavail) * fs.Bsize, err
}

// full is the limit that leaves no room. Its text is written into the output.
type full struct {
	limit int64
	of    limitOf
	user  string
}

type limitOf int

const (
	ofAttempt limitOf = iota
	ofTask
	ofUser
	ofTotal
	ofDisk
)

// ErrLimit means that a limit leaves no room for output. Other errors wrap it.
var ErrLimit = errors.New("limit of output")

func (f *full) Unwrap() error { return ErrLimit }

func (f *full) Error() string {
	size := sizeText(f.limit)
	switch f.of {
	case ofAttempt:
		return fmt.Sprintf("a log is limited to %d bytes", f.limit)
	case ofTask:
		return "the output of a task is limited to " + size
	case ofUser:
		return fmt.Sprintf("the output of user %s is limited to %s", f.user, size)
	case ofTotal:
		return "the output of all tasks is limited to " + size
	default:
		return size + " of the disk stay free"
	}
}

func sizeText(n int64) string {
	switch {
	case n >= gib:
		return fmt.Sprintf("%.1f GiB", float64(n)/gib)
	case n >= mib:
		return fmt.Sprintf("%.1f MiB", float64(n)/mib)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
