package docker

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"carma/containers"
)

// systemError marks a frame by which the engine reports that its own reading
// of the log failed.
const systemError containers.Stream = 3

// frame is one of the engine's multiplexed stream: eight bytes of header
// (stream, three zeros, length), then one entry of the log. An entry is a
// line, or 16 KiB of a longer one.
type frame struct {
	stream containers.Stream
	data   []byte // reused by the next read
}

// maxFrame bounds what a corrupt header can make us allocate.
const maxFrame = 16 << 20

// read returns io.EOF at the end of a frame only; anywhere else the end is
// io.ErrUnexpectedEOF, a broken connection.
func (f *frame) read(r *bufio.Reader) error {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	f.stream = containers.Stream(head[0])
	n := binary.BigEndian.Uint32(head[4:])
	if f.stream > systemError || n > maxFrame {
		return fmt.Errorf("log stream out of step: header %x", head)
	}
	if cap(f.data) < int(n) {
		f.data = make([]byte, n)
	}
	f.data = f.data[:n]
	if _, err := io.ReadFull(r, f.data); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return nil
}
