// Package lines reads the lines of a file while another program appends to it, such as an
// engine's log or a task's stored output.
package lines

import (
	"bytes"
	"io"
)

// Reader reads the complete lines of a file that may still grow. Reset sets the file.
type Reader struct {
	file       io.ReaderAt
	off        int64 // offset of the next line
	buf        []byte
	start, end int // bounds of the part of buf that is not consumed; start corresponds to off
}

// Reset begins at the start of a file. It keeps the buffer.
func (r *Reader) Reset(file io.ReaderAt) { *r = Reader{file: file, buf: r.buf} }

// Offset returns the offset of the next line in the file.
func (r *Reader) Offset() int64 { return r.off }

// Next returns the next line without its newline, which is the byte after it. The line is
// valid until the next call. nil means the present end of the file: a line without
// newline is not complete.
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
