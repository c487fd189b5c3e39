package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// fixed are the bytes that every journal database has in its header, by their
// offset (sqlite.org/fileformat2.html, 1.3). The other bytes change, or are
// checked by SQLite and by [schema].
var fixed = []struct {
	at    int
	bytes []byte
	begun []byte // the bytes until the first checkpoint, which are also sound
	what  string
}{
	{0, []byte("SQLite format 3\x00"), nil, "what it is"},
	{16, []byte{0x10, 0}, nil, "the size of its pages"},
	{18, []byte{2, 2}, []byte{1, 1}, "who may read and write it"},
	{20, []byte{0, 64, 32, 32}, nil, "how its pages are filled"},
	{44, []byte{0, 0, 0, 4}, make([]byte, 4), "how its tables are described"},
	{52, []byte{0, 0, 0, 0, 0, 0, 0, 1}, make([]byte, 8), "how its text is encoded"},
	{64, make([]byte, 28), nil, "what nobody uses"},
}

// headerLen is the size in bytes of the header of an SQLite file.
const headerLen = 100

// checkHeader reports damage to the header of a database file. A missing or
// shorter file is not damaged.
func checkHeader(path string) error {
	h, err := readHeader(path)
	if h == nil || err != nil {
		return err
	}
	for _, f := range fixed {
		if found := h[f.at:][:len(f.bytes)]; !bytes.Equal(found, f.bytes) && !bytes.Equal(found, f.begun) {
			return fmt.Errorf("%w: its first bytes do not say %s", ErrDamaged, f.what)
		}
	}
	return nil
}

// readHeader returns the header of a database file. It returns nil for a file that is
// missing or shorter than a header, because SQLite has not written to it.
func readHeader(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := make([]byte, headerLen)
	if _, err := io.ReadFull(f, h); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return h, nil
}

// mendHeader writes the fixed bytes of a database header. It also makes SQLite compute the
// number of pages from the size of the file.
func mendHeader(path string) (err error) {
	h, err := readHeader(path)
	if h == nil || err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, p := range fixed {
		if _, err := f.WriteAt(p.bytes, int64(p.at)); err != nil {
			return err
		}
	}
	// SQLite uses the number of pages only if these two fields are equal.
	changes, countedAt := binary.BigEndian.Uint32(h[24:]), int64(92)
	_, err = f.WriteAt(binary.BigEndian.AppendUint32(nil, ^changes), countedAt)
	return err
}
