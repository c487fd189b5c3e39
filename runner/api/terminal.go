package api

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// TerminalProtocol is the protocol of a connection that attaches to a terminal or runs a
// command in a task. After the upgrade both sides send frames.
const TerminalProtocol = "carma-terminal/1"

// FrameKind is the kind of a [Frame].
type FrameKind byte

// Frames of the caller, and frames of the daemon.
const (
	FrameInput  FrameKind = 'i' // input
	FrameEnd    FrameKind = 'e' // end of the input
	FrameSize   FrameKind = 's' // a [TerminalSize], in JSON
	FrameSignal FrameKind = 'k' // the number of a signal for the command, as text

	FrameStdout FrameKind = 'o' // output; all output of a terminal
	FrameStderr FrameKind = 'r'
	FrameExit   FrameKind = 'x' // the command's exit code as text; empty after the attempt's end
	FrameNote   FrameKind = 'n' // a sentence from the daemon; the connection ends
)

// MaxFrame is the largest size of a frame in bytes.
const MaxFrame = 64 << 10

// TerminalSize is the size of a terminal in characters.
type TerminalSize struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// ExecRequest requests a command in a running task.
type ExecRequest struct {
	Command []string `json:"command" minItems:"1" doc:"program and arguments"`
	Env     []string `json:"env,omitempty" doc:"KEY=value, added to the task's"`
	WorkDir string   `json:"workdir,omitempty" maxLength:"4096" doc:"folder in the container; empty: the task's"`
	// Interactive is set if the command has an input. TTY is set if it has a terminal of
	// this size.
	Interactive bool         `json:"interactive,omitempty"`
	TTY         bool         `json:"tty,omitempty"`
	Size        TerminalSize `json:"size,omitzero"`
}

// Terminal is an upgraded connection. One goroutine may read while others write.
type Terminal struct {
	conn io.ReadWriteCloser
	mu   sync.Mutex // guards writes
}

// NewTerminal sends and receives frames on a connection.
func NewTerminal(conn io.ReadWriteCloser) *Terminal { return &Terminal{conn: conn} }

// Frame is one message of an upgraded connection: a letter, the length of the data
// (4 bytes, big endian), the data.
type Frame struct {
	Kind FrameKind
	Data []byte
}

// Read returns the next frame. It returns io.EOF if the other side has closed the
// connection between two frames.
func (t *Terminal) Read() (Frame, error) {
	var head [5]byte
	if _, err := io.ReadFull(t.conn, head[:]); err != nil {
		return Frame{}, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > MaxFrame {
		return Frame{}, fmt.Errorf("a frame of %d bytes; at most %d are allowed", n, MaxFrame)
	}
	f := Frame{Kind: FrameKind(head[0]), Data: make([]byte, n)}
	if _, err := io.ReadFull(t.conn, f.Data); err != nil {
		return Frame{}, err
	}
	return f, nil
}

// Write sends data as one frame, or as several of one kind.
func (t *Terminal) Write(kind FrameKind, data []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		n := min(len(data), MaxFrame)
		frame := make([]byte, 5, 5+n)
		frame[0] = byte(kind)
		binary.BigEndian.PutUint32(frame[1:], uint32(n))
		if _, err := t.conn.Write(append(frame, data[:n]...)); err != nil {
			return err
		}
		if data = data[n:]; len(data) == 0 {
			return nil
		}
	}
}

// Resize sends the terminal's size.
func (t *Terminal) Resize(to TerminalSize) error {
	b, err := json.Marshal(to)
	if err != nil {
		return err
	}
	return t.Write(FrameSize, b)
}

// Stream returns a writer that sends its data as frames of one kind.
func (t *Terminal) Stream(kind FrameKind) io.Writer { return frameWriter{t, kind} }

type frameWriter struct {
	t    *Terminal
	kind FrameKind
}

func (w frameWriter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := w.t.Write(w.kind, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close ends the connection.
func (t *Terminal) Close() error { return t.conn.Close() }

// Attach connects to the terminal, or the input, of a running task.
func (c *Client) Attach(ctx context.Context, ref string) (*Terminal, error) {
	path, _ := AttachTask.request(TaskPath{ref})
	return c.upgrade(ctx, path, struct{}{})
}

// Exec runs a command in a running task.
func (c *Client) Exec(ctx context.Context, ref string, e ExecRequest) (*Terminal, error) {
	path, body := ExecInTask.request(onTask(ref, e))
	return c.upgrade(ctx, path, body)
}

// upgrade makes a request and returns its connection.
func (c *Client) upgrade(ctx context.Context, path string, body any) (*Terminal, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", TerminalProtocol)
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &NoDaemonError{Socket: c.socket, Err: err}
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != http.StatusSwitchingProtocols || !ok {
		defer resp.Body.Close()
		if resp.StatusCode < 300 {
			return nil, fmt.Errorf("the daemon answers %s to %s: it is older than this program", resp.Status, path)
		}
		return nil, statusError(resp)
	}
	return NewTerminal(conn), nil
}
