package kubernetes

import "io"

// input buffers a program's input, which may arrive before the connection to the program
// exists.
type input struct {
	w      *io.PipeWriter
	r      *io.PipeReader
	pieces chan []byte // closed when the input ends
	// pending is a piece that a connection did not accept. Only hand accesses it.
	pending []byte
	gone    chan struct{} // closed when no more input is accepted
}

func (in *input) init() {
	in.r, in.w = io.Pipe()
	in.pieces, in.gone = make(chan []byte), make(chan struct{})
	go in.read()
}

// read reads the input in pieces.
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

// stop refuses further input.
func (in *input) stop() {
	_ = in.r.CloseWithError(io.ErrClosedPipe)
	close(in.gone)
}

// hand sends the input to a connection, from the time when alive is closed until the connection
// ends. used is true if it has sent anything.
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
