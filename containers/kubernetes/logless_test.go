package kubernetes

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/containers"
)

// TestLogless: a node that has removed the log of a pod sends a message instead of the log.
// That ends the reading of a pod that has ended, and all earlier output is kept. It does not
// end the reading of a running pod.
func TestLogless(t *testing.T) {
	type said struct {
		lines []string
		last  time.Time
		err   error
	}
	follow := func(ctx context.Context, d *Driver, id string, since time.Time, first chan<- string) said {
		s := said{last: since}
		s.err = d.Logs(ctx, id, since, true, func(at time.Time, _ containers.Stream, text []byte, _ bool) {
			s.lines, s.last = append(s.lines, string(text)), at
			select {
			case first <- string(text):
			default:
			}
		})
		return s
	}
	t.Run("ended", func(t *testing.T) {
		c := newCluster(t, toolImage)
		d := c.driver(t, Options{})
		defer d.Close()
		id := begin(t, d, task("x", "out:one", "raw:half", "block:0"))
		all, first := make(chan said, 1), make(chan string, 1)
		go func() { all <- follow(t.Context(), d, id, time.Time{}, first) }()
		<-first
		c.logless.Store(true)
		asked := c.requests()
		if err := d.Signal(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		got := <-all
		if got.err != nil || !slices.Equal(got.lines, []string{"one", "half"}) {
			t.Errorf("%q, %v", got.lines, got.err)
		}
		if n := countOf(asked(), "GET lab/pods/x/log"); n > 2 {
			t.Errorf("the log was asked for %d times", n)
		}
		if again := follow(t.Context(), d, id, got.last, nil); again.err != nil || len(again.lines) > 0 {
			t.Errorf("read on: %q, %v", again.lines, again.err)
		}
	})

	t.Run("runs", func(t *testing.T) {
		c := newCluster(t, toolImage)
		d := c.driver(t, Options{})
		defer d.Close()
		c.logless.Store(true)
		id := begin(t, d, task("x", "out:one", "block:0"))
		asked := c.requests()
		all := make(chan said, 1)
		go func() { all <- follow(t.Context(), d, id, time.Time{}, nil) }()
		for countOf(asked(), "GET lab/pods/x/log") < 3 {
			time.Sleep(time.Millisecond)
		}
		if err := d.Logs(t.Context(), id, time.Time{}, false, func(time.Time, containers.Stream, []byte, bool) {}); err != nil {
			t.Errorf("not followed: %v", err)
		}
		c.logless.Store(false)
		first := make(chan string, 1)
		go func() { _ = follow(t.Context(), d, id, time.Time{}, first) }()
		<-first
		if err := d.Signal(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if got := <-all; got.err != nil || !slices.Equal(got.lines, []string{"one"}) {
			t.Errorf("%q, %v", got.lines, got.err)
		}
	})
}

func countOf(requests []string, want string) (n int) {
	for _, r := range requests {
		if strings.HasPrefix(r, want) {
			n++
		}
	}
	return n
}
