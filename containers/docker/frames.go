package docker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"carma/containers"
)

// systemError is the stream of a frame with an error of the engine's log reader.
const systemError containers.Stream = 3

// frame is one frame of the engine's multiplexed stream: a header of eight bytes
// (stream, three zeros, length), then one entry of the log. An entry is a line,
// or 16 KiB of a longer one.
type frame struct {
	stream containers.Stream
	data   []byte // buffer reused by the next read
	// plain is set if the stream comes from a container with a terminal, which has no
	// headers. There an entry ends with its line. Within a line above 16 KiB the engine
	// inserts times between its pieces, which look like output.
	plain bool
}

// maxFrame bounds the memory in bytes that a corrupt header can make the reader allocate.
const maxFrame = 16 << 20

// read reads the next frame. It returns io.EOF only between two frames. An end elsewhere
// is io.ErrUnexpectedEOF, a broken connection.
func (f *frame) read(r *bufio.Reader) error {
	if f.plain {
		line, err := r.ReadSlice('\n')
		if len(line) > 0 && (err == nil || errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull)) {
			f.stream, f.data = containers.Stdout, append(f.data[:0], line...)
			return nil
		}
		return err
	}
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
