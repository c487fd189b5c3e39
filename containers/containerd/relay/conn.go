package relay

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
)

// Conn is the session's side of a connection. Copy, Write and the other methods may be
// called concurrently.
type Conn struct {
	conn *net.UnixConn
	mu   sync.Mutex // held by the sender
	buf  []byte
}

// Dial connects to the container whose relay socket is in dir. If no [Host] listens
// there, it returns the kernel's error.
func Dial(dir string) (*Conn, error) {
	c := &Conn{}
	err := at(dir, func(a *net.UnixAddr) (err error) { c.conn, err = net.DialUnix("unix", nil, a); return err })
	if err != nil {
		return nil, err
	}
	if err := c.send(hello, nil); err != nil {
		_ = c.conn.Close()
		return nil, err
	}
	return c, nil
}

func (c *Conn) send(kind byte, data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = appendFrame(c.buf[:0], kind, data)
	_, err := c.conn.Write(c.buf)
	return err
}

// Copy passes on the output until it has ended. It returns an error if the connection
// broke or a writer failed.
func (c *Conn) Copy(stdout, stderr io.Writer) error {
	from, buf := bufio.NewReaderSize(c.conn, 64<<10), []byte(nil)
	for {
		kind, data, err := readFrame(from, &buf)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		switch {
		case err != nil:
		case kind == out:
			_, err = stdout.Write(data)
		case kind == errs:
			_, err = stderr.Write(data)
		case kind == over:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Write sends input to the program.
func (c *Conn) Write(p []byte) (int, error) {
	const piece = 32 << 10
	for n := 0; n < len(p); n += piece {
		if err := c.send(input, p[n:min(n+piece, len(p))]); err != nil {
			return n, err
		}
	}
	return len(p), nil
}

// CloseWrite ends the input.
func (c *Conn) CloseWrite() error { return c.send(end, nil) }

// Close ends the connection.
func (c *Conn) Close() error { return c.conn.Close() }
