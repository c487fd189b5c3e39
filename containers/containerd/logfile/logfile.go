// Package logfile keeps the output of one container in a folder, for an
// engine that keeps none: containerd hands a container's two pipes to a
// process of our choice, which is [Run], one per container. It outlives the
// daemon and the engine, and ends with the container.
//
// The folder holds numbered files, of which the newest [Files] stay, and the
// file "lock", which is locked while the writer lives. A file is a sequence of
// entries: a header of 16 bytes (the letter 'L', stream, flags, zero, length of
// the text in 4 bytes, time in 8, both big endian), then the text without its
// newline. Each file but the first begins with an entry that tells how many
// came before, so that a reader knows how many it has missed. Nothing is
// changed after it is written but that the oldest file goes.
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

// What is kept of a container's output.
const (
	// FileSize is where the writer begins a new file, in bytes, if it is not
	// told how much to keep.
	FileSize = 16 << 20
	// minFileSize is the smallest size that it is told.
	minFileSize = 64 << 10
	// Files is how many of them stay.
	Files = 3
	// Piece is the longest text of an entry, in bytes; a longer line is cut.
	Piece = 16 << 10
)

// Entry is a line, or a piece of one.
type Entry struct {
	// At is later than that of all entries before, of both streams.
	At time.Time
	// Stream is 1 (standard output), 2 (standard error) or [missing].
	Stream uint8
	// Partial: the line goes on in the stream's next entry.
	Partial bool
	Text    []byte
}

const (
	headerSize = 16
	magic      = 'L'
	partial    = 1 // flag
	// missing is the stream of the entry at a file's beginning: the text of
	// [containers.Lines]. A reader passes it on where something is missing.
	missing = uint8(containers.Missing)
)

// ErrDamaged is returned where a file does not hold what a writer writes.
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

// numbers are those of the files in the folder, in order.
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

// Ended reports whether the writer of a folder is gone: all it will ever
// write is there. It is also true where there has been none.
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

// Newest is when the last file was written to: a container whose engine does
// not know its end ran at least until then. Zero: nothing was written.
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
