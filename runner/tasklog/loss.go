package tasklog

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// loss is output that is missing.
type loss struct{ lines, bytes int64 }

func (w *Writer) fail(err error) {
	if !w.failing {
		w.report = err
	}
	w.failing, w.cause = true, err
}

func (w *Writer) lose(lines, bytes int64) {
	w.lost.lines += lines
	w.lost.bytes += bytes
	w.lostEver.lines += lines
	w.lostEver.bytes += bytes
}

// noteLoss says in the log what was lost, as soon as there is room for that
// and for the next bytes after it.
func (w *Writer) noteLoss(at time.Time, next int) {
	if w.lost.lines == 0 {
		return
	}
	cause := w.cause
	if e, ok := errors.AsType[*fs.PathError](cause); ok {
		cause = e.Err
	}
	text := fmt.Sprintf("%d lines (%d bytes) could not be written here: %v", w.lost.lines, w.lost.bytes, cause)
	text = strings.ReplaceAll(text, "\n", " ")
	note := appendLine(nil, Line{At: at, Stream: Note, Text: []byte(text)})
	if w.flush() && w.room(int64(len(note)+next)) && w.store(note) {
		w.lost, w.failing = loss{}, false
	}
}

func (w *Writer) takeReport() error {
	err := w.report
	w.report = nil
	if err != nil {
		return fmt.Errorf("log of task %d, attempt %d: %w", w.k.task, w.k.attempt, err)
	}
	return nil
}

// Lost returns how much output could not be written since the log was opened.
func (w *Writer) Lost() (lines, bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lostEver.lines, w.lostEver.bytes
}
