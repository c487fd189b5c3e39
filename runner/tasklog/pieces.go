package tasklog

import "time"

// PieceBytes is the size of the pieces in which a long line is written.
const PieceBytes = 16 << 10

// Pieces writes a task's output to its log. An engine may pass on a progress bar a few
// updates at a time, and progress is read from these updates. They are joined here, so
// that the log has no more pieces than for another long line. A killed daemon loses no
// updates, because the next daemon reads them again.
type Pieces struct {
	out *Writer

	at     time.Time // of the latest piece
	stream Stream
	text   []byte // the waiting part of an unfinished line
}

// NewPieces returns pieces for a log.
func NewPieces(out *Writer) *Pieces { return &Pieces{out: out} }

// Write takes a line, or a piece of one.
func (p *Pieces) Write(at time.Time, stream Stream, text []byte, partial bool) error {
	var err error
	if stream != p.stream {
		err = p.Flush()
	}
	p.at, p.stream = at, stream
	if partial && len(p.text)+len(text) < PieceBytes {
		p.text = append(p.text, text...)
		return err
	}
	if len(p.text) > 0 {
		p.text = append(p.text, text...)
		text = p.text
	}
	p.text = p.text[:0]
	if failed := p.out.Write(at, stream, text, partial); failed != nil {
		err = failed
	}
	return err
}

// Flush writes the waiting part.
func (p *Pieces) Flush() error {
	if len(p.text) == 0 {
		return nil
	}
	text := p.text
	p.text = p.text[:0]
	return p.out.Write(p.at, p.stream, text, true)
}
