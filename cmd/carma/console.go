package main

import (
	"fmt"
	"io"
	"sync"

	"carma/runner/api"
)

// console prints a task's output and, on a terminal, one status line below it
// that is updated in place. Safe for concurrent use.
type console struct {
	out, err io.Writer
	// live: stderr is a terminal; else there is no status line.
	live  bool
	stamp bool // print the time before each line

	mu    sync.Mutex
	drawn bool // the status line is on the screen
	open  bool // the last output has not ended its line
}

func (a *app) console() *console {
	return &console{out: a.out, err: a.err, live: isTerminal(a.err)}
}

// line prints one line of a task's output, or a notice of the daemon's.
func (c *console) line(l api.LogLine) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erase()
	w, text := c.out, l.Line
	switch l.Stream {
	case "stderr":
		w = c.err
	case "carma":
		w, text = c.err, "carma: "+printable(text)
		c.endLine()
	}
	if c.stamp && !c.open {
		text = l.At.Local().Format("2006-01-02T15:04:05.000Z07:00") + " " + text
	}
	if !l.Partial {
		text += "\n"
	}
	c.open = l.Partial
	_, err := io.WriteString(w, text)
	return err
}

// say prints a line about what carma does.
func (c *console) say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erase()
	c.endLine()
	fmt.Fprintf(c.err, "carma: "+format+"\n", args...)
}

// status shows text below the output until something else is printed; an
// empty one removes it.
func (c *console) status(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.live || c.open { // never in the middle of a task's own line
		return
	}
	c.erase()
	if text != "" {
		// Room is left for the ^C that a terminal prints behind it.
		fmt.Fprint(c.err, shorten(printable(text), widthOf(c.err)-len("^C")))
		c.drawn = true
	}
}

// echoed takes the ^C off the screen that a terminal has printed.
func (c *console) echoed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drawn = c.drawn || c.live && !c.open
}

func (c *console) erase() {
	if c.drawn {
		fmt.Fprint(c.err, "\r\x1b[K")
		c.drawn = false
	}
}

// endLine ends a line that a task has begun, on a terminal, where a notice
// would else stand behind it.
func (c *console) endLine() {
	if c.open && c.live {
		fmt.Fprintln(c.err)
		c.open = false
	}
}
