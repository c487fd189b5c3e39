package kubernetes

import "io"

// input buffers a program's input, which may begin before anything is connected to the
// program.
type input struct {
	w      *io.PipeWriter
	r      *io.PipeReader
	pieces chan []byte // closed at the end of the input
	// pending is a piece that a connection did not take. Only hand has it.
	pending []byte
	gone    chan struct{} // closed when nobody takes any more
}

func (in *input) init() {
	in.r, in.w = io.Pipe()
	in.pieces, in.gone = make(chan []byte), make(chan struct{})
	go in.read()
}

// read takes the input in pieces.
func (in *input) read() {
	defer close(in.pieces)
	for b := make([]byte, 32<<10); ; {
		n, err := in.r.Read(b)
		if n > 0 {
			select {
			case in.pieces <- append([]byte(nil), b[:n]...):
			case <-in.gone:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// end ends the input.
func (in *input) end() { _ = in.w.Close() }

// stop refuses more of it.
func (in *input) stop() {
	_ = in.r.CloseWithError(io.ErrClosedPipe)
	close(in.gone)
}

// hand gives the input to a connection as long as that lasts, from the moment at which
// it is alive. used: something was given.
func (in *input) hand(to *stream, alive <-chan struct{}) (used bool) {
	select {
	case <-alive:
	case <-to.over:
		return false
	}
	for {
		piece, more := in.pending, true
		if piece == nil {
			select {
			case <-to.over:
				return used
			case piece, more = <-in.pieces:
			}
		}
		if !more {
			_ = to.stdin.Close()
			return used
		}
		if in.pending = piece; !to.takes(piece) {
			return used
		}
		in.pending, used = nil, true
	}
}
