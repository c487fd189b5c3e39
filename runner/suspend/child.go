package suspend

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// child is the daemon's side of one helper process. After the process has ended, [Helper]
// starts another child.
type child struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	said *tail
	// over is closed when the process was killed or has exited. ended is closed when the
	// process has ended and its output was read.
	over, ended chan struct{}
	cuda        int

	mu      sync.Mutex
	last    uint64
	pending map[uint64]*waiting
	gone    bool // no call may begin
	dead    bool // over is closed
}

// waiting is a call that has no answer yet.
type waiting struct {
	answer chan outcome
	hung   bool // its time limit has passed
}

// outcome is the result of a call.
type outcome struct {
	reply reply
	fault Fault
	text  string
}

// start starts a helper and waits until it has loaded the library.
func start(cmd *exec.Cmd, limit time.Duration) (*child, error) {
	c := &child{cmd: cmd, said: &tail{}, over: make(chan struct{}), ended: make(chan struct{}), pending: map[uint64]*waiting{}}
	cmd.Stderr = c.said
	cmd.WaitDelay = time.Second // another process may have inherited its outputs
	// The helper has its own process group, so that a signal for the daemon's group does
	// not reach it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	c.in = in
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	hello := make(chan outcome, 1)
	c.pending[0] = &waiting{answer: hello}
	if err := cmd.Start(); err != nil {
		return nil, &Unavailable{"start the suspend helper: " + err.Error()}
	}
	go c.read(newLineReader(out))
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case got := <-hello:
		switch {
		case got.fault != Answered:
			return c, &Unavailable{"the suspend helper did not start: " + got.text}
		case got.reply.Error != "":
			c.kill()
			return c, &Unavailable{got.reply.Error}
		}
		c.cuda = got.reply.CUDA
		return c, nil
	case <-timer.C:
		c.kill()
		return c, &Unavailable{fmt.Sprintf("the suspend helper has not loaded the NVIDIA driver's library within %s: the driver hangs, or a helper of an earlier daemon is still in a call", limit)}
	}
}

// read passes the answers to their callers until the helper ends.
func (c *child) read(lines *bufio.Reader) {
	defer close(c.ended)
	var wrong error
	for wrong == nil {
		var r reply
		if wrong = readLine(lines, &r); wrong == nil {
			wrong = c.deliver(r)
		}
	}
	c.stop()
	if !errors.Is(wrong, io.EOF) {
		c.killNow()
	}
	err := c.cmd.Wait()
	text := ""
	switch {
	case !errors.Is(wrong, io.EOF):
		text = "it answered with " + wrong.Error()
	case c.said.line() != "":
		text = c.said.line()
	case err != nil:
		text = err.Error()
	default:
		text = "it ended by itself"
	}
	c.fail(text)
}

func (c *child) deliver(r reply) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, ok := c.pending[r.ID]
	if !ok {
		return fmt.Errorf("an answer to no question (%d)", r.ID)
	}
	delete(c.pending, r.ID)
	w.answer <- outcome{reply: r}
	c.retire()
	return nil
}

// stop prevents further calls from beginning.
func (c *child) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
}

// fail reports to the callers that the helper has ended.
func (c *child) fail(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fault := Crashed
	if len(c.pending) > 1 {
		fault = Unsure
	}
	for id, w := range c.pending {
		delete(c.pending, id)
		if w.hung {
			w.answer <- outcome{fault: Hung}
		} else {
			w.answer <- outcome{fault: fault, text: text}
		}
	}
	c.end()
}

// retire kills a helper with a call that hangs. It waits for other running calls, each up
// to its limit, because an interrupted checkpoint may harm its process.
func (c *child) retire() {
	hung := 0
	for _, w := range c.pending {
		if w.hung {
			hung++
		}
	}
	if hung == 0 || hung < len(c.pending) {
		return
	}
	for id, w := range c.pending {
		delete(c.pending, id)
		w.answer <- outcome{fault: Hung}
	}
	c.end()
	c.killNow()
}

// end records that the helper makes no more calls.
func (c *child) end() {
	c.gone = true
	if !c.dead {
		c.dead = true
		close(c.over)
	}
}

// kill ends a helper that has not started.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
	c.killNow()
}

// killNow kills the helper with its child processes, which would keep its outputs open.
func (c *child) killNow() {
	if c.cmd.Process.Kill() == nil { // otherwise the number may belong to another process
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// alive reports whether calls may begin.
func (c *child) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.gone
}

// do makes one call and waits for its answer, no longer than its limit and the limits of
// the calls beside it.
func (c *child) do(r request, limit time.Duration) outcome {
	w := &waiting{answer: make(chan outcome, 1)}
	if err := c.send(r, w, limit); err != nil {
		return *err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case got := <-w.answer:
		return got
	case <-timer.C:
	}
	c.mu.Lock()
	w.hung, c.gone = true, true
	c.retire()
	c.mu.Unlock()
	return <-w.answer // the answer may still arrive late
}

// send writes a request. It returns an outcome if there is no answer to wait for, else
// nil.
func (c *child) send(r request, w *waiting, limit time.Duration) *outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return &outcome{fault: Bystander}
	}
	c.last++
	r.ID, r.LimitMS = c.last, limit.Milliseconds()
	c.pending[r.ID] = w
	if err := writeLine(c.in, r); errors.Is(err, errLong) {
		delete(c.pending, r.ID)
		return &outcome{reply: reply{Error: err.Error()}}
	}
	// Another error of the pipe means that the helper has ended, which read reports.
	return nil
}

// tail stores the beginning of the helper's text output, because the first line of a
// crash is the most useful.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := 400 - len(t.text); room > 0 {
		t.text = append(t.text, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// line returns the first line.
func (t *tail) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	first, _, _ := strings.Cut(strings.TrimSpace(string(t.text)), "\n")
	return first
}
