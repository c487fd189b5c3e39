package logfile

import (
	"bufio"
	"errors"
	"io"
	"os"
	"time"

	"carma/containers"
)

// Reader reads a folder from the oldest file to the newest, while it may still be
// written. It is not safe for concurrent use.
type Reader struct {
	dir   string
	since time.Time
	file  *os.File
	buf   *bufio.Reader
	n     int   // the file's number
	seen  int64 // number of entries until here, including missing ones
	text  []byte
	atEnd func() // called at the end of a file; only tests set it
}

// NewReader returns a reader of the entries after since, or of all entries if since is
// zero.
func NewReader(dir string, since time.Time) *Reader {
	return &Reader{dir: dir, since: since, buf: bufio.NewReaderSize(nil, 64<<10)}
}

// Next returns the next entry; its text is valid until the next call. io.EOF means that
// there is no entry now, but more may come. Next returns an entry of stream
// [containers.Missing] where entries are missing.
func (r *Reader) Next() (Entry, error) {
	for {
		if r.file == nil {
			if err := r.open(); err != nil {
				return Entry{}, err
			}
		}
		e, err := r.entry()
		if err == nil {
			if r.wanted(&e) {
				return e, nil
			}
			continue
		}
		if err != io.EOF && !errors.Is(err, ErrDamaged) {
			return Entry{}, err
		}
		if r.atEnd != nil {
			r.atEnd()
		}
		// If there is a newer file, this one is complete. It may have grown since
		// its end was seen, so read once more.
		newer, listErr := r.newer()
		if listErr != nil {
			return Entry{}, listErr
		}
		if newer == 0 {
			return Entry{}, err
		}
		if err == io.EOF {
			if e, err = r.entry(); err == nil {
				if r.wanted(&e) {
					return e, nil
				}
				continue
			}
		}
		_ = r.file.Close()
		r.file = nil
	}
}

// wanted counts an entry and reports whether the caller should get it. Files of older
// writers do not contain the number of earlier entries.
func (r *Reader) wanted(e *Entry) bool {
	if e.Stream == missing {
		l, _ := containers.ParseMissing(e.Text)
		if l.Before == r.seen {
			return false
		}
		r.seen = l.Before
	} else {
		r.seen++
	}
	if !e.At.After(r.since) {
		return false
	}
	r.since = e.At
	return true
}

// newer returns the number of the first file after the current one, or 0 if there is
// none.
func (r *Reader) newer() (int, error) {
	ns, err := numbers(r.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	for _, n := range ns {
		if n > r.n {
			return n, nil
		}
	}
	return 0, nil
}

// open opens the first file after the current one.
func (r *Reader) open() error {
	for {
		next, err := r.newer()
		if err != nil {
			return err
		}
		if next == 0 {
			return io.EOF
		}
		f, err := os.Open(filePath(r.dir, next))
		if errors.Is(err, os.ErrNotExist) {
			continue // the writer has just deleted it
		}
		if err != nil {
			return err
		}
		r.file, r.n = f, next
		r.buf.Reset(f)
		return nil
	}
}

// entry reads one entry. If the next entry is not complete yet, entry does not advance
// and returns io.EOF.
func (r *Reader) entry() (Entry, error) {
	head, err := r.buf.Peek(headerSize)
	if err != nil {
		return Entry{}, r.short(err)
	}
	e, n, err := parseHeader(head)
	if err != nil {
		return Entry{}, err
	}
	all, err := r.buf.Peek(headerSize + n)
	if err != nil {
		return Entry{}, r.short(err)
	}
	r.text = append(r.text[:0], all[headerSize:]...)
	e.Text = r.text
	_, err = r.buf.Discard(headerSize + n)
	return e, err
}

// short turns an end of file inside an entry into io.EOF. The peeked bytes stay in the
// buffer, so that the next read continues there.
func (r *Reader) short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}

// Close closes the file that is open.
func (r *Reader) Close() {
	if r.file != nil {
		_ = r.file.Close()
		r.file = nil
	}
}
