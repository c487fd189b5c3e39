package tasklog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Expire replaces the output of an ended task by a note with the amount of output and the
// reason for its removal. It returns the number of bytes freed. Expire may be repeated.
func (s *Store) Expire(task int64, why string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.expire(s.task(task), why)
}

func (s *Store) expire(t *taskAccount, why string) int64 {
	for k := range s.writers {
		if k.task == t.id {
			return 0
		}
	}
	attempts, _ := s.Attempts(t.id)
	for _, n := range attempts {
		// Output that could not be replaced stays, and stays counted.
		_ = s.expireAttempt(key{t.id, n}, why)
	}
	size := s.measure(t.id)
	freed := t.size - size
	s.count(t, -freed)
	return freed
}

// expireAttempt first writes the note over the head, which needs no room, and then deletes
// the rest. After a crash in between, the remaining files still show how much is missing.
func (s *Store) expireAttempt(k key, why string) error {
	segs, err := s.segments(k)
	if err != nil || len(segs) == 0 {
		return err
	}
	newest := segs[len(segs)-1]
	end := loss{lines: newest.line, bytes: newest.start}
	var at time.Time
	lines := 0
	err = s.scan(k, newest, func(l Line, ok bool, raw []byte, _ int64) {
		end.pass(l, ok, raw)
		lines++
		if ok {
			at = l.At
		}
	})
	if err != nil || len(segs) == 1 && lines <= 1 {
		return err // the output is only a note
	}
	for i := len(segs) - 2; i >= 0 && at.IsZero(); i-- { // the newest file has no line yet
		err = s.scan(k, segs[i], func(l Line, ok bool, _ []byte, _ int64) {
			if ok {
				at = l.At
			}
		})
		if err != nil {
			return err
		}
	}
	note := appendLine(nil, Line{At: at, Stream: Note, Text: []byte(end.note(why))})
	f, err := os.OpenFile(s.path(k, segment{attempt: k.attempt}), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(note, 0)
	if err == nil {
		err = f.Truncate(int64(len(note)))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, seg := range segs {
		if !seg.head() {
			err = errors.Join(err, os.Remove(s.path(k, seg)))
		}
	}
	return errors.Join(err, ignoreMissing(os.Remove(s.whyPath(k))))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// whyPath returns the path of the file with the reason why the middle of an attempt's
// output is missing. The file does not exist if the attempt's own limit is the only
// reason.
func (s *Store) whyPath(k key) string {
	return fmt.Sprintf("%s/%d.why", s.folder(k.task), k.attempt)
}

// because records the reason. The attempt's own limit is recorded only to replace another
// reason.
func (s *Store) because(k key, over *full) {
	if over.of != ofAttempt || exists(s.whyPath(k)) {
		s.becauseOf(k, over.Error())
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (s *Store) becauseOf(k key, text string) {
	if s.why(k) != text {
		_ = os.WriteFile(s.whyPath(k), []byte(text), 0o600) // without it the note names the attempt's limit
	}
}

// why returns the reason for the output that is missing in the middle.
func (s *Store) why(k key) string {
	if b, err := os.ReadFile(s.whyPath(k)); err == nil && len(b) > 0 {
		return strings.ReplaceAll(string(b), "\n", " ")
	}
	return (&full{limit: s.Limits().Attempt, of: ofAttempt}).Error()
}
