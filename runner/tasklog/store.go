// Package tasklog keeps the output of every attempt of every task, so that it
// can be read while the attempt runs and after its container is gone.
//
// An attempt's output is in the format of the container runtime interface,
//
//	2026-11-21T03:04:05.123456789Z stdout F a line
//
// with P in place of F for a piece of a line that continues. The start of the output is in
// <task>/<attempt>.log. Once that has grown to an eighth of the limit, the rest goes to
// further files beside it, the oldest of which are deleted as the limit requires. Their
// names carry the position in the output at which they start, so missing output is known
// without any other record.
//
// All output together is bounded as well, per task, per user and in total; see
// [Limits] and makeRoom. Wherever output is missing, a note in its place says
// how much and why.
//
// The package has no clock and starts no goroutine.
package tasklog

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

var (
	// ErrNotFound means that the attempt has no log.
	ErrNotFound = errors.New("no log")
	// ErrOpen means that the attempt's log is being written.
	ErrOpen = errors.New("log is being written")
)

const (
	// DefaultLimit is the default of Limits.Attempt.
	DefaultLimit = 64 << 20
	// MinLimit is the lowest limit: eight files that hold a line each.
	MinLimit = 8 * 2 * MaxLine
	// shares is the number of files that share the limit.
	shares = 8
)

// Store is a folder of logs. Its methods may be called from several goroutines.
// Only one process may write.
type Store struct {
	dir    string
	former []string // other folders in which there may be output
	size   int64    // size of the disk in bytes, or 0 if unknown
	limits atomic.Pointer[Limits]
	open   func(path string, flag int) (file, error)      // replaced by tests
	disk   func(dir string) (size, free int64, err error) // the same

	mu      sync.Mutex
	writers map[key]*Writer // open writers
	owed    map[key]debt    // losses of closed writers without a note
	tasks   map[int64]*taskAccount
	users   map[string]*userAccount
	total   int64
}

type key struct {
	task    int64
	attempt int
}

// file is the part of os.File that a writer needs.
type file interface {
	WriteAt(b []byte, off int64) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

// Open returns the store in dir with the default limits, except that limit is the number
// of bytes kept of one attempt.
func Open(dir string, limit int64) *Store { return New(dir, Limits{Attempt: limit}) }

// New returns the store in dir, which is made when first needed. Output in one of the
// former folders stays there and can be read.
func New(dir string, limits Limits, former ...string) *Store {
	s := &Store{
		dir: dir, former: former, disk: room,
		writers: map[key]*Writer{}, tasks: map[int64]*taskAccount{}, users: map[string]*userAccount{},
		open: func(path string, flag int) (file, error) {
			return os.OpenFile(path, flag, 0o600)
		},
	}
	for d := dir; ; d = filepath.Dir(d) { // the folder may not exist yet
		n, _, err := s.disk(d)
		if s.size = n; err == nil || d == filepath.Dir(d) {
			break
		}
	}
	s.SetLimits(limits)
	return s
}

// Limits returns the limits in force.
func (s *Store) Limits() Limits { return *s.limits.Load() }

// SetLimits changes the limits. Output above the new ones is removed when the
// next output comes.
func (s *Store) SetLimits(l Limits) {
	l = l.on(s.size)
	s.limits.Store(&l)
}

// Tasks lists the tasks that have output on disk, in no order.
func (s *Store) Tasks() (tasks []int64, err error) {
	for _, dir := range append([]string{s.dir}, s.former...) {
		names, readErr := readNames(dir)
		if !errors.Is(readErr, fs.ErrNotExist) {
			err = errors.Join(err, readErr)
		}
		for _, name := range names {
			if id, parseErr := strconv.ParseInt(name, 10, 64); parseErr == nil && strconv.FormatInt(id, 10) == name {
				tasks = append(tasks, id)
			}
		}
	}
	return tasks, err
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(0)
}

// Check returns an error if output cannot be written now.
func (s *Store) Check() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, ".check")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Attempts lists the attempts of a task that have a log, lowest first.
func (s *Store) Attempts(task int64) ([]int, error) {
	entries, err := os.ReadDir(s.folder(task))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var attempts []int
	for _, e := range entries {
		if seg, ok := parseName(e.Name()); ok {
			attempts = append(attempts, seg.attempt)
		}
	}
	slices.Sort(attempts)
	return slices.Compact(attempts), err
}

// Remove deletes the logs of a task, and may be repeated. It returns [ErrOpen] while one
// of the logs is being written. Followers read on to the end of the files that they have
// opened.
func (s *Store) Remove(task int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.writers {
		if k.task == task {
			return fmt.Errorf("remove logs of task %d: attempt %d: %w", task, k.attempt, ErrOpen)
		}
	}
	if err := os.RemoveAll(s.folder(task)); err != nil {
		return fmt.Errorf("remove logs of task %d: %w", task, err)
	}
	s.forgetTask(task)
	maps.DeleteFunc(s.owed, func(k key, _ debt) bool { return k.task == task })
	return nil
}

// Writing reports whether an attempt's log is open for writing, so that a follower gets
// all later output.
func (s *Store) Writing(task int64, attempt int) bool { return s.writer(key{task, attempt}) != nil }

func (s *Store) writer(k key) *Writer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writers[k]
}

func (s *Store) folder(task int64) string {
	name := strconv.FormatInt(task, 10)
	for _, dir := range s.former {
		if path := filepath.Join(dir, name); exists(path) {
			return path
		}
	}
	return filepath.Join(s.dir, name)
}

func (s *Store) path(k key, seg segment) string {
	return filepath.Join(s.folder(k.task), seg.name())
}
