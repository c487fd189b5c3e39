// Package logfile keeps the output of one container in a folder, for an engine that keeps
// none. containerd passes a container's two pipes to a process that its client names.
// Here this process is [Run], one per container. It outlives the daemon and the engine,
// and ends with the container.
//
// The folder has numbered files, the newest [Files] of which are kept, and the file
// "lock", which is locked while the writer runs. A file is a sequence of entries. An
// entry is a header of 16 bytes and the text without its newline. The header consists of
// the letter 'L', the stream, flags, a zero, the length of the text (4 bytes) and the
// time (8 bytes), both big endian. Each file except the first begins with an entry that
// contains the number of entries before it, so that a reader can tell how many it has
// missed. Data once written never changes; only the oldest file is deleted.
package logfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"carma/containers"
)

// Limits of the output that is kept.
const (
	// FileSize is the size in bytes at which the writer begins a new file, if its
	// caller sets none.
	FileSize = 16 << 20
	// minFileSize is the smallest size that a caller can set, in bytes.
	minFileSize = 64 << 10
	// Files is the number of log files that are kept.
	Files = 3
	// Piece is the longest text of an entry, in bytes. Longer lines are cut into
	// pieces.
	Piece = 16 << 10
)

// Entry is a line, or a piece of one.
type Entry struct {
	// At is later than the time of every entry before, of both streams.
	At time.Time
	// Stream is 1 (standard output), 2 (standard error) or [missing].
	Stream uint8
	// Partial is set if if the line continues in the stream's next entry.
	Partial bool
	Text    []byte
}

const (
	headerSize = 16
	magic      = 'L'
	partial    = 1 // flag
	// missing is the stream of the entry at the beginning of a file. Its text is a
	// [containers.Lines]. A reader returns this entry if entries are missing.
	missing = uint8(containers.Missing)
)

// ErrDamaged means that a file contains bytes that no writer wrote.
var ErrDamaged = errors.New("log file damaged")

func appendEntry(b []byte, e Entry) []byte {
	var flags uint8
	if e.Partial {
		flags = partial
	}
	b = append(b, magic, e.Stream, flags, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(e.Text)))
	b = binary.BigEndian.AppendUint64(b, uint64(e.At.UnixNano()))
	return append(b, e.Text...)
}

// parseHeader reads a header and returns n, the size in bytes of the text that follows.
func parseHeader(h []byte) (e Entry, n int, err error) {
	size := binary.BigEndian.Uint32(h[4:])
	if h[0] != magic || h[1] < 1 || h[1] > missing || h[2] > partial || h[3] != 0 || size > Piece {
		return Entry{}, 0, fmt.Errorf("%w: header %x", ErrDamaged, h)
	}
	at := time.Unix(0, int64(binary.BigEndian.Uint64(h[8:]))).UTC()
	return Entry{At: at, Stream: h[1], Partial: h[2] == partial}, int(size), nil
}

func filePath(dir string, n int) string { return filepath.Join(dir, "log."+strconv.Itoa(n)) }

// numbers returns the numbers of the files in the folder, ascending.
func numbers(dir string) ([]int, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var ns []int
	for _, f := range files {
		if rest, ok := strings.CutPrefix(f.Name(), "log."); ok {
			if n, err := strconv.Atoi(rest); err == nil && n > 0 {
				ns = append(ns, n)
			}
		}
	}
	slices.Sort(ns)
	return ns, nil
}

// Ended reports whether the writer of a folder has ended or never existed. Then no more
// output will come.
func Ended(dir string) (bool, error) {
	f, err := os.Open(filepath.Join(dir, "lock"))
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, nil
	default:
		return false, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
}

// Newest returns the time of the last write, or zero if nothing was written. If the
// engine has lost a container's end, the container ran at least until then.
func Newest(dir string) time.Time {
	ns, err := numbers(dir)
	if err != nil || len(ns) == 0 {
		return time.Time{}
	}
	info, err := os.Stat(filePath(dir, ns[len(ns)-1]))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime().UTC()
}
