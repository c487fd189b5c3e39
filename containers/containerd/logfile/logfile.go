// Package logfile keeps the output of one container in a folder, for an engine
// that keeps none. containerd hands a container's two pipes to a process of our
// choice. That process is [Run], one per container. It outlives the daemon and
// the engine, and ends with the container.
//
// The folder has numbered files, of which the newest [Files] stay, and the file "lock",
// which is locked while the writer lives. A file is a sequence of entries. An entry is a
// header of 16 bytes and the text without its newline. The header has the letter 'L', the
// stream, flags, a zero, the length of the text (4 bytes) and the time (8 bytes), both
// big endian. Each file but the first begins with an entry that has the number of entries
// before it. So a reader knows how many it has missed. Data once written never changes;
// only the oldest file is deleted.
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
	// Partial: the line continues in the stream's next entry.
	Partial bool
	Text    []byte
}

const (
	headerSize = 16
	magic      = 'L'
	partial    = 1 // flag
	// missing is the stream of the entry at the beginning of a file. Its text is
	// a [containers.Lines]. A reader passes it on if entries are missing.
	missing = uint8(containers.Missing)
)

// ErrDamaged: a file has bytes that no writer writes.
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

// parseHeader reads a header; the text of n bytes follows it.
func parseHeader(h []byte) (e Entry, n int, err error) {
	size := binary.BigEndian.Uint32(h[4:])
	if h[0] != magic || h[1] < 1 || h[1] > missing || h[2] > partial || h[3] != 0 || size > Piece {
		return Entry{}, 0, fmt.Errorf("%w: header %x", ErrDamaged, h)
	}
	at := time.Unix(0, int64(binary.BigEndian.Uint64(h[8:]))).UTC()
	return Entry{At: at, Stream: h[1], Partial: h[2] == partial}, int(size), nil
}

func filePath(dir string, n int) string { return filepath.Join(dir, "log."+strconv.Itoa(n)) }

// numbers are the numbers of the files in the folder, ascending.
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

// Ended reports whether the writer of a folder is gone. Then no more output will
// come. It is also true if there never was a writer.
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

// Newest is the time of the last write. If the engine does not know a container's end, it
// ran at least until then. It is zero if nothing was written.
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
