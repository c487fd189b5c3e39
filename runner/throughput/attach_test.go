package throughput

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"carma/containers"
	"carma/runner/clock"
)

// attacher is a driver with streams that a test prints to.
type attacher struct {
	containers.OutputAttacher

	mu    sync.Mutex // guards all below
	calls int
	fails error
	to    *io.PipeWriter // the latest session's
}

// now returns how often the driver was asked, and where to print to.
func (a *attacher) now() (calls int, to *io.PipeWriter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls, a.to
}

func (a *attacher) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fails = err
}

func (a *attacher) AttachOutput(context.Context, string, containers.Stream) (containers.Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	if a.fails != nil {
		return nil, a.fails
	}
	r, w := io.Pipe()
	a.to = w
	return &attachedTo{from: r}, nil
}

type attachedTo struct {
	containers.Session
	from *io.PipeReader
}

func (s *attachedTo) Copy(stdout, _ io.Writer) error {
	_, err := io.Copy(stdout, s.from)
	return err
}

func (s *attachedTo) Close() error { return s.from.Close() }

// bars returns the updates of a progress bar of 1000 steps, one per second.
func bars(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "\r%3d%%|## | %d/1000 [%02d:%02d<10:00,  1.00it/s]", i/10, i, i/60, i%60)
	}
	return b.String()
}

// TestAttachedBar checks that a progress bar that the log contains only later is read from the
// attached stream, that the same text in the log is not read again, and that the log is read
// after the stream breaks.
func TestAttachedBar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, d := clock.New(1), &attacher{}
		f := newFollower(clock)
		ctx, end := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); f.attach(ctx, d, "id", containers.Stderr) }()
		fed := 0.0
		want := func(what string, done float64, calls int) {
			t.Helper()
			synctest.Wait()
			p, _, _ := f.Progress(clock.Now())
			if asked, _ := d.now(); p.Done != done || p.Restarts != 0 || asked != calls {
				t.Errorf("%s: %v done, %d restarts, attached %d times; want %v, 0, %d", what, p.Done, p.Restarts, asked, done, calls)
			}
			fed = done
		}
		log := func(text string, partial bool) {
			f.Read(time.Now(), containers.Stderr, []byte(text), partial)
		}
		print := func(from, until int) {
			_, to := d.now()
			for i := from; i <= until; i++ {
				if _, err := io.WriteString(to, bars(i, i)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
		}
		time.Sleep(logQuiet - time.Second)
		log("loading 3 files", false)
		time.Sleep(logQuiet - time.Second)
		want("the log is not quiet yet", 0, 0)
		time.Sleep(time.Second)
		want("the log is quiet", 0, 1)
		print(1, 20)
		want("the bar", 20, 1)
		log(bars(1, 21), true)
		want("the log has it too", 20, 1)

		// The stream breaks. The log still has the text read from it, and then the rest.
		_, to := d.now()
		_ = to.CloseWithError(io.ErrUnexpectedEOF)
		synctest.Wait()
		f.Read(time.Now().Add(-time.Second), containers.Stderr, []byte(bars(10, 21)+"\r"), true)
		want("the log from before the break", fed, 1)
		time.Sleep(time.Second)
		log(bars(15, 22), true)
		log(bars(23, 24)+"\r", true)
		want("the log from after the break", 24, 1)

		d.fail(containers.ErrUnavailable)
		time.Sleep(logQuiet)
		want("the engine is away", 24, 2)
		d.fail(nil)
		time.Sleep(logQuiet)
		want("the engine is back", 24, 3)
		print(60, 63)
		want("attached again", 63, 3)

		// A flood of output, which the log contains soon enough.
		_, to = d.now()
		if _, err := io.WriteString(to, strings.Repeat("x", attachedMost)+"\n"); err == nil {
			t.Error("a flood is read from the stream")
		}
		time.Sleep(logQuiet / 2)
		log(bars(64, 70), false)
		want("a flood", 70, 3)

		time.Sleep(logQuiet)
		want("after the flood", 70, 4)
		end()
		<-over
		_, to = d.now()
		if _, err := io.WriteString(to, "x"); err == nil {
			t.Error("the session goes on after the end")
		}
	})
}

// TestAttachEnds: a container that has ended, or an engine that cannot attach, gets no further
// attach requests.
func TestAttachEnds(t *testing.T) {
	for _, fails := range []error{containers.ErrNotFound, containers.ErrUnsupported} {
		synctest.Test(t, func(t *testing.T) {
			d := &attacher{fails: fails}
			newFollower(clock.New(1)).attach(t.Context(), d, "id", containers.Stdout)
			if d.calls != 1 {
				t.Errorf("%v: asked %d times", fails, d.calls)
			}
		})
	}
}

// TestLoggedAfterClockSetBack: the log is read again some time after a stream was
// detached, whatever the wall clock says.
func TestLoggedAfterClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{again: true, latest: time.Now()}
		back := time.Now().Add(-time.Hour)
		if _, ok := s.logged(back, []byte("a")); ok {
			t.Error("an old entry was taken")
		}
		time.Sleep(2 * logQuiet)
		if text, ok := s.logged(back, []byte("a\rb\r")); !ok || string(text) != "b\r" {
			t.Errorf("%q, %v", text, ok)
		}
		if text, ok := s.logged(back, []byte("a\rb\r")); !ok || string(text) != "a\rb\r" {
			t.Errorf("%q, %v", text, ok)
		}
	})
}
