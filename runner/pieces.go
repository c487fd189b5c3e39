package runner

import (
	"time"

	"carma/containers"
	"carma/runner/tasklog"
)

// pieceBytes is the size of the pieces in which a long line is written.
const pieceBytes = 16 << 10

// pieces writes a task's output to its log. An engine may pass on a progress bar a few
// updates at a time, and progress is read from these updates. They are joined here, so
// that the log has no more pieces than for another long line. A killed daemon loses no
// updates, because the next daemon reads them again.
type pieces struct {
	out *tasklog.Writer

	at     time.Time // of the latest piece
	stream containers.Stream
	text   []byte // the waiting part of an unfinished line
}

// write takes a line, or a piece of one.
func (p *pieces) write(at time.Time, stream containers.Stream, text []byte, partial bool) error {
	var err error
	if stream != p.stream {
		err = p.flush()
	}
	p.at, p.stream = at, stream
	if partial && len(p.text)+len(text) < pieceBytes {
		p.text = append(p.text, text...)
		return err
	}
	if len(p.text) > 0 {
		p.text = append(p.text, text...)
		text = p.text
	}
	p.text = p.text[:0]
	if failed := p.out.Write(at, tasklog.Stream(stream), text, partial); failed != nil {
		err = failed
	}
	return err
}

// flush writes the waiting part.
func (p *pieces) flush() error {
	if len(p.text) == 0 {
		return nil
	}
	text := p.text
	p.text = p.text[:0]
	return p.out.Write(p.at, tasklog.Stream(p.stream), text, true)
}
