// Package audit stores the audit log: a record of each action of an administrator, in
// files of bounded size.
//
// A record is a line of JSON in audit.jsonl, and is on the disk when [Log.Add] returns.
// When the file is full, it becomes audit.1.jsonl, audit.1.jsonl becomes audit.2.jsonl,
// and the oldest file is deleted. The files are readable for the daemon's user only.
package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"carma/runner/api"
)

const (
	// fileBytes is the size at which a new file begins, files the number of files kept: at
	// most 16 MiB, some 80,000 records.
	fileBytes = 4 << 20
	files     = 4
	// maxDetail is the length in bytes to which a detail is cut.
	maxDetail = 400
	// quiet is the time within which equal read actions are recorded once.
	quiet = 10 * time.Minute
	// maxQuiet is the largest number of read actions that are remembered for that.
	maxQuiet = 4096
)

// Record is an action of an administrator.
type Record = api.AuditRecord

// reading is the part of a record that makes two read actions equal.
type reading struct {
	uid, owner  int
	who, action string
	object      string
	task        int64
	allowed     bool
}

// Log is the audit log of a daemon. It is safe for concurrent use.
type Log struct {
	dir   string
	limit int64 // size limit of a file in bytes

	mu     sync.Mutex
	file   *os.File // nil until it is opened
	size   int64
	closed bool
	quiet  map[reading]time.Time // time of the last record of a read action, by the wall clock
}

// New returns the log in a folder. Its file is opened for the first record.
func New(dir string) *Log {
	return &Log{dir: dir, limit: fileBytes, quiet: map[reading]time.Time{}}
}

// open opens the newest file for appending. It removes the end of a line that a crash has
// cut off.
func (l *Log) open() error {
	f, err := os.OpenFile(l.path(0), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the audit log: %w", err)
	}
	whole, err := wholeLines(f)
	if err == nil {
		err = f.Truncate(whole)
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("open the audit log: %w", err)
	}
	l.file, l.size = f, whole
	return nil
}

// wholeLines returns the length of a file without an unfinished last line.
func wholeLines(f *os.File) (int64, error) {
	b, err := os.ReadFile(f.Name())
	return int64(bytes.LastIndexByte(b, '\n') + 1), err
}

// path returns the path of a file; 0 is the newest file.
func (l *Log) path(n int) string {
	name := "audit.jsonl"
	if n > 0 {
		name = fmt.Sprintf("audit.%d.jsonl", n)
	}
	return filepath.Join(l.dir, name)
}

// Add adds a record, which is on the disk when Add returns without an error. It does not
// repeat a read action within ten minutes.
func (l *Log) Add(r Record, reads bool) error {
	if len(r.Detail) > maxDetail {
		r.Detail = strings.ToValidUTF8(r.Detail[:maxDetail], "") + "..."
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key, now := reading{r.UID, r.OwnerUID, r.Who, r.Action, r.Object, r.Task, r.Allowed}, time.Now()
	if at, is := l.quiet[key]; reads && is && now.Sub(at) < quiet {
		return nil
	}
	if err := l.write(append(line, '\n')); err != nil || !reads {
		return err
	}
	if len(l.quiet) >= maxQuiet {
		clear(l.quiet)
	}
	l.quiet[key] = now
	return nil
}

// write appends a line. The caller holds mu.
func (l *Log) write(line []byte) error {
	if l.closed {
		return fmt.Errorf("audit log: %w", fs.ErrClosed)
	}
	if l.file == nil {
		if err := l.open(); err != nil {
			return err
		}
	}
	if l.size > 0 && l.size+int64(len(line)) > l.limit {
		if err := l.rotate(); err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
	}
	n, err := l.file.Write(line)
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil { // no half line may precede the next one
		return fmt.Errorf("audit log: %w", errors.Join(err, l.file.Truncate(l.size)))
	}
	l.size += int64(n)
	return nil
}

// rotate begins a new file. The caller holds mu.
func (l *Log) rotate() error {
	for n := files - 1; n > 0; n-- {
		if err := os.Rename(l.path(n-1), l.path(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	old := l.file
	if err := l.open(); err != nil {
		return err
	}
	return old.Close()
}

// Close closes the log.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}
