// Package lines reads the lines of a file while another program appends to it: the logs
// of an engine, and the outputs that the daemon keeps.
package lines

import (
	"bytes"
	"io"
)

// Reader reads the complete lines of a file that may still grow. Reset names the file.
type Reader struct {
	file       io.ReaderAt
	off        int64 // where the next line starts
	buf        []byte
	start, end int // what of buf is not consumed; start is at off
}

// Reset begins at the start of a file. It keeps the buffer.
func (r *Reader) Reset(file io.ReaderAt) { *r = Reader{file: file, buf: r.buf} }

// Offset returns where in the file the next line starts.
func (r *Reader) Offset() int64 { return r.off }

// Next returns the next line without its newline, which is the byte behind it. It is
// valid until the next call. nil is the end of the file for now: a line without newline
// is not complete.
func (r *Reader) Next() ([]byte, error) {
	searched := 0
	for {
		if i := bytes.IndexByte(r.buf[r.start+searched:r.end], '\n'); i >= 0 {
			end := r.start + searched + i
			line := r.buf[r.start : end : end+1]
			r.start = end + 1
			r.off += int64(len(line)) + 1
			return line, nil
		}
		searched = r.end - r.start
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
		if r.end == len(r.buf) {
			r.buf = append(r.buf, make([]byte, max(32<<10, len(r.buf)))...)
		}
		n, err := r.file.ReadAt(r.buf[r.end:], r.off+int64(r.end))
		r.end += n
		if n == 0 {
			if err == io.EOF {
				err = nil
			}
			return nil, err
		}
	}
}
