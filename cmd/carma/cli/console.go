package cli

import (
	"cmp"
	"fmt"
	"io"
	"sync"

	"carma/runner/api"
)

// Console prints a task's output and, on a terminal, one status line below it that is
// updated in place. It is safe for concurrent use.
type Console struct {
	Out, err io.Writer
	// Live is set if stderr is a terminal. Otherwise there is no status line.
	Live  bool
	Stamp bool // print the time before each line

	mu    sync.Mutex
	drawn bool            // the status line is on the screen
	open  bool            // the last output has an unfinished line
	begun map[string]bool // by stream: its last line is unfinished
}

// Console returns a console on the program's own streams.
func (a *App) Console() *Console {
	return &Console{Out: a.Out, err: a.Err, Live: IsTerminal(a.Err)}
}

// Line prints one line of a task's output, or a notice from the daemon.
func (c *Console) Line(l api.LogLine) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erase()
	w, text := c.Out, l.Line
	switch l.Stream {
	case "stderr":
		w = c.err
	case "carma":
		w, text = c.err, "carma: "+Printable(text)
		c.endLine()
	}
	if c.Stamp && !c.begun[l.Stream] {
		text = l.At.Local().Format("2006-01-02T15:04:05.000Z07:00") + " " + text
	}
	if !l.Partial {
		text += "\n"
	}
	c.open = l.Partial
	if c.begun == nil {
		c.begun = map[string]bool{}
	}
	c.begun[l.Stream] = l.Partial
	_, err := io.WriteString(w, text)
	return err
}

// Say prints a line about carma's actions.
func (c *Console) Say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erase()
	c.endLine()
	fmt.Fprintf(c.err, "carma: "+format+"\n", args...)
}

// Status shows text below the output until something else is printed. An empty text
// removes it.
func (c *Console) Status(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.Live || c.open { // never inside a task's line
		return
	}
	c.erase()
	if text != "" {
		// This leaves room for the ^C that a terminal prints after the text.
		fmt.Fprint(c.err, Shorten(Printable(text), cmp.Or(WidthOf(c.err), usualWidth)-len("^C")))
		c.drawn = true
	}
}

// Echoed removes the ^C that a terminal has printed.
func (c *Console) Echoed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drawn = c.drawn || c.Live && !c.open
}

// usualWidth is the width of a terminal that does not report one.
const usualWidth = 80

func (c *Console) erase() {
	if c.drawn {
		fmt.Fprint(c.err, "\r\x1b[K")
		c.drawn = false
	}
}

// endLine ends a task's unfinished line on a terminal, so that a notice does not follow
// it on the same line.
func (c *Console) endLine() {
	if c.open && c.Live {
		fmt.Fprintln(c.err)
		c.open = false
		clear(c.begun)
	}
}
