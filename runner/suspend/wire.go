package suspend

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds a line in either direction, in bytes. All requests that may run together
// fit into a pipe (64 KiB), so that writing a request never waits for a hanging helper.
const maxLine = 4096

// request is a line to the helper.
type request struct {
	ID   uint64 `json:"id"`
	Call Call   `json:"call"`
	PID  int    `json:"pid"`
	// TimeoutMS is the time that a lock may wait for the process to come to rest.
	TimeoutMS uint32 `json:"timeout_ms,omitempty"`
	Pairs     []Pair `json:"pairs,omitempty"`
	// LimitMS is the longest time of the call. After the daemon has died, the helper does
	// not wait longer for the call.
	LimitMS int64 `json:"limit_ms"`
}

// reply is a line from the helper. The first reply has ID 0 and reports that the library
// is loaded, or the error.
type reply struct {
	ID    uint64 `json:"id"`
	Code  Code   `json:"code,omitempty"`
	State State  `json:"state,omitempty"`
	Error string `json:"error,omitempty"` // error of the helper itself
	CUDA  int    `json:"cuda,omitempty"`  // in the first reply, CUDA's version
}

var errLong = fmt.Errorf("a line of more than %d bytes", maxLine)

// readLine decodes one line into v. The error is io.EOF, or describes the problem in the
// line.
func readLine(r *bufio.Reader, v any) error {
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return errLong
	case errors.Is(err, io.EOF) && len(line) > 0:
		return fmt.Errorf("half a line: %s", shorten(line))
	case err != nil:
		return err
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("not a line of the helper's: %s", shorten(line))
	}
	return nil
}

func newLineReader(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, maxLine) }

func writeLine(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(line) >= maxLine {
		return errLong
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// shorten returns the beginning of foreign text, quoted.
func shorten(text []byte) string {
	if len(text) > 80 {
		return fmt.Sprintf("%q...", text[:80])
	}
	return fmt.Sprintf("%q", text)
}
