// Package relay connects sessions with the program of a containerd container.
//
// The container's logging process reads the program's output, and outlives the daemon. It
// is also the host of the sessions: it listens on a socket in the container's folder,
// sends each session the output, and passes the sessions' input to the program. See
// [Host] and [Conn].
package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// Names of the files in a container's folder.
const (
	socketName = "session"
	// InputName is the named pipe from which the program, or its terminal, reads input.
	InputName = "input"
)

// InputPath returns the path of the input pipe in a container's folder.
func InputPath(dir string) string { return filepath.Join(dir, InputName) }

// A frame consists of its kind (one byte), the length of its data (four bytes, big
// endian) and the data. A session sends hello first, then input and end. It receives out,
// err and over. Frames of other kinds are ignored, so that later versions can add more.
const (
	hello = 'h'
	input = 'i'
	end   = 'e' // end of the input
	out   = 'o'
	errs  = 'x'
	over  = 'q' // the program's output has ended
)

const (
	headSize = 5
	// maxFrame is the largest size of a frame's data.
	maxFrame = 1 << 20
)

var errFrame = errors.New("not a frame of a session")

func appendFrame(b []byte, kind byte, data []byte) []byte {
	b = append(b, kind)
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	return append(b, data...)
}

// readFrame reads a frame into buf, which it may replace by a larger one. data is
// valid until the next call.
func readFrame(r io.Reader, buf *[]byte) (kind byte, data []byte, err error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.BigEndian.Uint32(head[1:]))
	if n > maxFrame {
		return 0, nil, fmt.Errorf("%w: %d bytes", errFrame, n)
	}
	if cap(*buf) < n {
		*buf = make([]byte, n)
	}
	data = (*buf)[:n]
	_, err = io.ReadFull(r, data)
	return head[0], data, err
}
