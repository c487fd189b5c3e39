package logfile

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// texts returns the stored entries; an entry of an unfinished line ends with "+".
func texts(es []Entry) (out []string) {
	for _, e := range es {
		text := string(e.Text)
		if e.Partial {
			text += "+"
		}
		out = append(out, text)
	}
	return out
}

// TestBar: a bar is stored before its line ends, several updates at a time, and that no other
// line is cut. The line end of a terminal is not split.
func TestBar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := create(t, FileSize)
		w.tty = true
		r := NewReader(w.dir, time.Time{})
		defer r.Close()
		pipe, in := io.Pipe()
		over := make(chan error, 1)
		go func() { over <- w.Copy(2, pipe) }()
		for _, step := range []struct {
			print string
			after time.Duration
			want  []string
		}{
			{"\r 1/100", 0, nil},
			{"\r 2/100", barEvery, []string{"\r 1/100\r 2/100+"}},
			{"\r 3/100", barEvery, []string{"\r 3/100+"}},
			{"", time.Hour, nil},
			{"\r 4/100", barEvery / 2, nil},
			{"\r 5/100\ndone\n\r", 0, []string{"\r 4/100\r 5/100", "done"}},
			{"", barEvery, nil},
			{"\nname? ", time.Hour, []string{"\r"}},
			{"x\r", time.Hour, nil},
			{"\n\ra\r", barEvery, []string{"name? x\r", "\ra+"}},
			{"", time.Hour, nil},
			{"\nb", 0, []string{"\r"}},
		} {
			if _, err := io.WriteString(in, step.print); err != nil {
				t.Fatal(err)
			}
			time.Sleep(step.after)
			synctest.Wait()
			if got := texts(readAll(t, r)); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", step.want) {
				t.Errorf("after %q and %v: %q, want %q", step.print, step.after, got, step.want)
			}
		}
		_ = in.Close()
		if err := <-over; err != nil {
			t.Error(err)
		}
		if got := texts(readAll(t, r)); len(got) != 1 || got[0] != "b" {
			t.Errorf("at the end: %q", got)
		}
	})
}

// TestBarFlood checks that updates without a pause make about as many log entries as lines of
// the same size, plus a few for the time they take.
func TestBarFlood(t *testing.T) {
	w := create(t, FileSize)
	text := strings.Repeat("\r 10/100", 20*Piece/8)
	begun := time.Now()
	if err := w.Copy(1, &chunks{strings.NewReader(text), 100}); err != nil {
		t.Fatal(err)
	}
	all := readAll(t, NewReader(w.dir, time.Time{}))
	if most := 21 + int(time.Since(begun)/barEvery); len(all) > most {
		t.Errorf("%d entries, want at most %d", len(all), most)
	}
	if got := lines(t, all, 1); len(got) != 1 || got[0] != text {
		t.Errorf("%d lines, or not what was printed", len(got))
	}
}
