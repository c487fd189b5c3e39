package tasklog

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// loss is an amount of output, either missing or already read.
type loss struct {
	lines, bytes int64
	unknown      bool // plus an unknown amount
}

// note returns the line in the log that represents missing output. The package also reads
// notes, so that the amount in a note still counts as missing if the note itself is
// deleted.
func (l loss) note(why string) string {
	amount := fmt.Sprintf("%d lines", l.lines)
	if l.bytes > 0 {
		amount += fmt.Sprintf(" (%d bytes)", l.bytes)
	}
	switch {
	case l.unknown && l.lines == 0:
		amount = "an unknown number of lines"
	case l.unknown:
		amount = "at least " + amount
	}
	return amount + " left out here: " + strings.ReplaceAll(why, "\n", " ")
}

// pass adds a stored line: the line itself, or the amount that a note represents.
func (l *loss) pass(line Line, ok bool, raw []byte) {
	if !ok || line.Stream != Note {
		l.lines++
		l.bytes += int64(len(raw))
		return
	}
	text := strings.TrimPrefix(string(line.Text), "at least ")
	var n, size int64
	if k, _ := fmt.Sscanf(text, "%d lines (%d bytes) ", &n, &size); k > 0 {
		l.lines += n
		l.bytes += size
	}
}

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

// missing reports whether something is lost that no note records yet.
func (w *Writer) missing() bool { return w.lost.lines > 0 || w.lost.unknown }

// Gap records output that is missing here because it never came, and why. lines is the
// number of lines, or negative if unknown. at is between the times of the line before and
// the line after.
func (w *Writer) Gap(at time.Time, lines int64, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || lines == 0 || !at.After(w.last) {
		return
	}
	w.cause, w.last = errors.New(why), at
	w.lost.unknown = w.lost.unknown || lines < 0
	w.lose(max(lines, 0), 0)
	w.noteLoss(0)
	w.wake()
}

// Before records that the next line has number n in the output, counted from 0. If fewer
// lines were written before, a note says how many are missing.
func (w *Writer) Before(at time.Time, n int64, why string) {
	w.mu.Lock()
	have := w.seg.line + w.out.lines + w.lost.lines
	w.mu.Unlock()
	if n > have {
		w.Gap(at, n-have, why)
	}
}

// noteLoss writes a note about the lost output, as soon as there is room for
// the note and for next bytes after it.
//
// The note has the time of the newest line before it, because all output up to that time
// is kept or counted.
func (w *Writer) noteLoss(next int) {
	if w.missing() && !w.opened() || !w.missing() { // opening may show that nothing is missing
		return
	}
	cause := w.cause
	if e, ok := errors.AsType[*fs.PathError](cause); ok {
		cause = e.Err
	}
	note := appendLine(nil, Line{At: w.last, Stream: Note, Text: []byte(w.lost.note(fmt.Sprint(cause)))})
	if w.flush() && w.room(int64(len(note)+next)) {
		w.append(note)
		w.out.lines += w.lost.lines
		w.out.bytes += w.lost.bytes
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
