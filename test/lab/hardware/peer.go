package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// peer is a Python program that gets lines and answers with lines of JSON.
type peer struct {
	name   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan []byte
	stderr bytes.Buffer
}

// startPeer starts a program of test/lab/hardware. It ends with the context.
func (s *session) startPeer(ctx context.Context, program string, args ...string) (*peer, error) {
	p := &peer{name: program, cmd: s.inPython(ctx, append([]string{filepath.Join(s.programs, program)}, args...)...), lines: make(chan []byte, 16)}
	p.cmd.Stderr = &p.stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			if line := bytes.Clone(in.Bytes()); len(line) > 0 && line[0] == '{' { // libraries print other lines
				p.lines <- line
			}
		}
	}()
	return p, nil
}

// send sends a line.
func (p *peer) send(format string, args ...any) error {
	_, err := fmt.Fprintf(p.in, format+"\n", args...)
	return err
}

// answer reads the next answer into v. io.EOF: the program has ended well.
func (p *peer) answer(ctx context.Context, v any) error {
	select {
	case line, ok := <-p.lines:
		if ok {
			return json.Unmarshal(line, v)
		}
		if err := p.cmd.Wait(); err != nil {
			return fmt.Errorf("%s: %w: %s", p.name, err, lastLine(p.stderr.String()))
		}
		return io.EOF
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", p.name, ctx.Err())
	}
}

// end ends the program and waits for it.
func (p *peer) end() {
	_ = p.in.Close()
	killed := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Cancel() })
	defer killed.Stop()
	for range p.lines {
	}
	_ = p.cmd.Wait()
}

// inPython returns a command for the Python with PyTorch, on the card of the measurements.
func (s *session) inPython(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.python, args...)
	// A measurement starts its own processes. None may continue when its time is over.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(os.Environ(), "PYTHONPATH="+s.training, "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1",
		"OMP_NUM_THREADS=2", "CARMA_BATCH_SIZE=", "CUDA_DEVICE_ORDER=PCI_BUS_ID")
	cmd.Env = append(cmd.Env, s.env...)
	if s.card != nil {
		cmd.Env = append(cmd.Env, "CUDA_VISIBLE_DEVICES="+s.card.device.UUID)
	}
	return cmd
}

// findPython finds a Python with PyTorch, and the folders of it that a container
// needs.
func (s *session) findPython(ctx context.Context) error {
	names := []string{"python3", "/usr/bin/python3"}
	if s.python != "" {
		names = []string{s.python}
	}
	var last error
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		s.python = path
		at, err := s.imported(ctx)
		if err == nil {
			s.python, s.plan.folders = at.Executable, at.Folders
			s.software = at
			return nil
		}
		last = err
	}
	s.python = ""
	return fmt.Errorf("none of %s has PyTorch and NumPy: %w", strings.Join(names, ", "), cmp.Or(last, exec.ErrNotFound))
}

// imported is probe.py's answer after it has imported PyTorch.
func (s *session) imported(ctx context.Context) (at stage, err error) {
	p, err := s.startPeer(ctx, "probe.py", "cpu")
	if err != nil {
		return at, err
	}
	defer p.end()
	return at, p.answer(ctx, &at)
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
