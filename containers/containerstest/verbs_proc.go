package containerstest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"carma/containers"
)

func (p *Proc) print(w io.Writer, s string) int {
	_, _ = io.WriteString(w, s)
	return goOn
}

// say prints a line.
func (p *Proc) say(s string) int { return p.print(p.Stdout, s+"\n") }

// ended prints the error and returns a failure, or returns success if err is nil.
func (p *Proc) ended(err error) int {
	if err == nil {
		return goOn
	}
	p.print(p.Stderr, err.Error()+"\n")
	return 1
}

// stopped waits for the stop signal. It returns false if the program must return at once.
func (p *Proc) stopped() bool {
	select {
	case <-p.Term:
		return true
	case <-p.Kill:
		return false
	}
}

func (p *Proc) read(path string) string {
	b, err := p.ReadFile(path)
	if err != nil {
		return "refused"
	}
	return string(bytes.TrimSpace(b))
}

func (p *Proc) write(path string) string {
	if err := p.WriteFile(path, []byte("written")); err != nil {
		return "refused"
	}
	return "written"
}

// line reads a line of the input, byte by byte, so that the rest is left for the next
// reader.
func (p *Proc) line() (string, bool) {
	var line []byte
	for b := make([]byte, 1); ; {
		n, err := p.Stdin.Read(b)
		if n > 0 && b[0] == '\n' {
			return strings.TrimSuffix(string(line), "\r"), true
		}
		line = append(line, b[:n]...)
		if err != nil {
			return string(line), len(line) > 0
		}
	}
}

// terminal prints the size of the terminal as soon as wanted accepts it.
func (p *Proc) terminal(wanted func(containers.Size) bool) int {
	size, changed, ok := p.Size()
	for ok && !wanted(size) {
		select {
		case <-changed:
		case <-p.Kill:
			return killed
		}
		size, changed, ok = p.Size()
	}
	if !ok {
		return p.say("no terminal")
	}
	return p.say(fmt.Sprintf("%d x %d", size.Rows, size.Cols))
}

// notebook answers connections until the stop signal.
func (p *Proc) notebook(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	p.say("listening")
	go func() {
		p.stopped()
		_ = l.Close()
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return nil
		}
		_, _ = io.WriteString(c, "a notebook\n")
		_ = c.Close()
	}
}

// gate polls, because a container FROM scratch has no tool that waits for a file.
func (p *Proc) gate(path string, _ int) int {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := p.ReadFile(path); err == nil {
			return goOn
		}
		select {
		case <-tick.C:
		case <-p.Kill:
			return killed
		}
	}
}
