package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"carma/runner/api"
)

// TestConsole checks that the status line is replaced in place, is removed before other output,
// is never printed within a task's line, and does not exist without a terminal.
func TestConsole(t *testing.T) {
	const erase = "\r\x1b[K"
	t.Setenv("COLUMNS", "40")
	script := func(c *Console) {
		c.Status("waits")
		c.Status("waits still, " + strings.Repeat("x", 100))
		_ = c.Line(api.LogLine{Stream: "stdout", Line: "one"})
		c.Status("again")
		c.Status("")
		_ = c.Line(api.LogLine{Stream: "stdout", Line: "two", Partial: true})
		c.Status("not now")
		_ = c.Line(api.LogLine{Stream: "stdout", Line: " halves"})
		_ = c.Line(api.LogLine{Stream: "stderr", Line: "half", Partial: true})
		c.Say("stopping %d", 7)
		_ = c.Line(api.LogLine{Stream: "carma", Line: "runs\nagain"})
	}
	var screen bytes.Buffer
	script(&Console{Out: &screen, err: &screen, Live: true})
	want := "waits" + erase + "waits still, " + strings.Repeat("x", 24) + "…" + erase + "one\nagain" + erase + "two halves\nhalf\ncarma: stopping 7\ncarma: runs again\n"
	if screen.String() != want {
		t.Errorf("terminal:\n got %q\nwant %q", screen.String(), want)
	}
	var out, err bytes.Buffer
	script(&Console{Out: &out, err: &err})
	if out.String() != "one\ntwo halves\n" || err.String() != "halfcarma: stopping 7\ncarma: runs again\n" {
		t.Errorf("piped: %q %q", out.String(), err.String())
	}
}

// TestConsoleStamps: a line has its time even if a line of the other stream is
// unfinished.
func TestConsoleStamps(t *testing.T) {
	var out, err bytes.Buffer
	c := &Console{Out: &out, err: &err, Stamp: true}
	at := time.Date(2026, 11, 27, 1, 2, 3, 0, time.Local)
	for _, l := range []api.LogLine{
		{Stream: "stderr", Line: "1/9", Partial: true}, {Stream: "stdout", Line: "loss"},
		{Stream: "stderr", Line: " 2/9", Partial: true}, {Stream: "stdout", Line: "a", Partial: true}, {Stream: "stderr"}, {Stream: "stdout", Line: "b"},
	} {
		l.At = at
		if err := c.Line(l); err != nil {
			t.Fatal(err)
		}
	}
	stamp := at.Format("2006-01-02T15:04:05.000Z07:00") + " "
	if want := stamp + "loss\n" + stamp + "ab\n"; out.String() != want {
		t.Errorf("stdout %q, want %q", out.String(), want)
	}
	if want := stamp + "1/9 2/9\n"; err.String() != want {
		t.Errorf("stderr %q, want %q", err.String(), want)
	}
}
