package tasklog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestOptions(t *testing.T) {
	s := Open(t.TempDir(), 0)
	w := mustWriter(t, s, 1, 1)
	for i := range 5 {
		write(t, w, time.Duration(i)*time.Second, Stdout, fmt.Sprint(i))
	}
	check := func(o Options, want string) {
		t.Helper()
		var got []string
		err := s.Follow(t.Context(), 1, 1, o, func(l Line) error {
			got = append(got, string(l.Text))
			return nil
		})
		if s := strings.Join(got, " "); s != want || err != nil {
			t.Errorf("%+v: %s (%v), want %s", o, s, err, want)
		}
	}
	for _, follow := range []bool{false, true} { // while it is written, and after
		if follow {
			closeLog(t, w)
		}
		check(Options{Follow: follow}, "0 1 2 3 4")
		check(Options{Follow: follow, Tail: 2}, "3 4")
		check(Options{Follow: follow, Tail: 5}, "0 1 2 3 4")
		check(Options{Follow: follow, Tail: 50}, "0 1 2 3 4")
		check(Options{Follow: follow, Tail: -1}, "")
		check(Options{Follow: follow, Since: epoch.Add(3 * time.Second)}, "3 4")
		check(Options{Follow: follow, Since: epoch.Add(3 * time.Second), Tail: 1}, "4")
		check(Options{Follow: follow, Since: epoch.Add(time.Hour)}, "")
	}
	if _, err := s.Tail(1, 2, 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("no such attempt: %v", err)
	}
	if _, err := s.Tail(2, 1, 3); !errors.Is(err, ErrNotFound) {
		t.Errorf("no such task: %v", err)
	}
}

// live starts a follower and returns its lines and its end.
func live(ctx context.Context, s *Store, o Options) (<-chan string, <-chan error) {
	lines, end := make(chan string), make(chan error, 1)
	o.Follow = true
	go func() {
		end <- s.Follow(ctx, 1, 1, o, func(l Line) error {
			lines <- string(l.Text)
			return nil
		})
	}()
	return lines, end
}

// A follower gets each line even without a call of Flush. Otherwise this test would hang.
func TestFollowLive(t *testing.T) {
	s := Open(t.TempDir(), 0)
	w := mustWriter(t, s, 1, 1)
	write(t, w, 0, Stdout, "before")
	lines, end := live(t.Context(), s, Options{})
	if got := <-lines; got != "before" {
		t.Errorf("got %q", got)
	}
	for i := range 100 {
		write(t, w, 0, Stdout, fmt.Sprint(i))
		if got := <-lines; got != fmt.Sprint(i) {
			t.Errorf("got %q, want %d", got, i)
		}
	}
	write(t, w, 0, Stdout, "last words")
	closed := make(chan error)
	go func() { closed <- w.Close() }()
	if got := <-lines; got != "last words" {
		t.Errorf("got %q", got)
	}
	if err := errors.Join(<-end, <-closed); err != nil {
		t.Error(err)
	}
}

// Closing the log ends waiting followers; cancelling a waiting follower ends
// that one. If they were not woken, the bubble would report a deadlock.
func TestWaitingFollowersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Open(t.TempDir(), 0)
		w := mustWriter(t, s, 1, 1)
		ctx, cancel := context.WithCancel(t.Context())
		_, first := live(ctx, s, Options{})
		_, second := live(t.Context(), s, Options{})
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		synctest.Wait()
		closeLog(t, w)
		if err := <-second; err != nil {
			t.Error(err)
		}
	})
}

func TestFollowEndsEarly(t *testing.T) {
	s := Open(t.TempDir(), 0)
	w := mustWriter(t, s, 1, 1)
	defer w.Close()
	write(t, w, 0, Stdout, "x")

	ctx, cancel := context.WithCancelCause(t.Context())
	lines, end := live(ctx, s, Options{})
	<-lines
	gone := errors.New("the client is gone")
	cancel(gone)
	if err := <-end; !errors.Is(err, gone) {
		t.Errorf("cancelled: %v", err)
	}

	full := errors.New("the pipe is full")
	err := s.Follow(t.Context(), 1, 1, Options{Follow: true}, func(Line) error { return full })
	if !errors.Is(err, full) {
		t.Errorf("fn failed: %v", err)
	}
}

// Followers of a log that rotates many times see each line once and in order,
// or a note in its place, up to the end.
func TestFollowDuringRotation(t *testing.T) {
	s := Open(t.TempDir(), 1)
	w := mustWriter(t, s, 1, 1)
	const total = 6000
	pad := strings.Repeat("x", 1000)
	write(t, w, 0, Stdout, "0 ")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			var lines []Line
			err := s.Follow(t.Context(), 1, 1, Options{Follow: true}, func(l Line) error {
				l.Text = bytes.Clone(l.Text[:min(len(l.Text), 40)])
				lines = append(lines, l)
				return nil
			})
			if err != nil {
				t.Error(err)
				return
			}
			checkNumbers(t, lines, nil)
			if last := string(lines[len(lines)-1].Text); !strings.HasPrefix(last, fmt.Sprint(total-1, " ")) {
				t.Errorf("follower %d: the last line is %.20s", i, last)
			}
		})
	}
	wg.Go(func() { // and one that reads the end again and again
		for {
			lines, err := s.Tail(1, 1, 50)
			if err != nil {
				t.Error(err)
				return
			}
			first, last := -1, 0
			for _, l := range lines {
				if l.Stream == Note { // overtaken while it read
					var missing int
					fmt.Sscanf(string(l.Text), "%d lines", &missing)
					last += missing
					continue
				}
				var n int
				if _, err := fmt.Sscanf(string(l.Text), "%d ", &n); err != nil || first >= 0 && n != last+1 {
					t.Errorf("line %.20q after %d (%v)", l.Text, last, err)
				}
				if first < 0 {
					first = n
				}
				last = n
			}
			if last == total-1 && last-first == 49 {
				return
			}
		}
	})
	for i := 1; i < total; i++ {
		write(t, w, time.Duration(i), Stdout, fmt.Sprint(i, " ", pad))
	}
	closeLog(t, w)
	wg.Wait()
}

// TestSlowFollower: if a limit deletes output before a follower reads it, the follower gets
// a note of the loss.
func TestSlowFollower(t *testing.T) {
	s := Open(t.TempDir(), 1)
	w := mustWriter(t, s, 1, 1)
	pad := strings.Repeat("x", 5000)
	sizes := []int{}
	put := func() {
		write(t, w, 0, Stdout, fmt.Sprint(len(sizes), " ", pad))
		sizes = append(sizes, len(w.scratch))
	}
	for range 60 { // into the third file
		put()
	}
	var lines []Line
	reached, overtaken, end := make(chan bool), make(chan bool), make(chan error, 1)
	go func() {
		end <- s.Follow(t.Context(), 1, 1, Options{Tail: 1, Follow: true}, func(l Line) error {
			if len(lines) == 0 {
				close(reached)
				<-overtaken
			}
			l.Text = bytes.Clone(l.Text)
			lines = append(lines, l)
			return nil
		})
	}()
	<-reached
	for range 2000 {
		put()
	}
	close(overtaken)
	closeLog(t, w)
	if err := <-end; err != nil {
		t.Fatal(err)
	}
	first := Line{At: epoch, Stream: Note, Text: []byte(fmt.Sprintf("59 lines (%d bytes) left out here", sum(sizes[:59])))}
	checkNumbers(t, append([]Line{first}, lines...), nil)
	notes, missing := 0, 0
	for _, l := range lines {
		if l.Stream == Note {
			fmt.Sscanf(string(l.Text), "%d lines", &missing)
			notes++
		}
	}
	if notes != 1 || missing < 1000 || 59+missing+len(lines)-1 != len(sizes) {
		t.Errorf("%d lines, %d notes of %d missing, of %d", len(lines), notes, missing, len(sizes))
	}
}

func sum(n []int) (total int) {
	for _, v := range n {
		total += v
	}
	return total
}

// The newest lines are found across files, and the note where it belongs.
func TestTailAcrossFiles(t *testing.T) {
	s := Open(t.TempDir(), 1)
	w := mustWriter(t, s, 1, 1)
	for i := range 3000 {
		write(t, w, 0, Stdout, fmt.Sprint(i, " ", strings.Repeat("x", 1000)))
	}
	closeLog(t, w)
	all, err := s.Tail(1, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	note := 0
	for all[note].Stream != Note {
		note++
	}
	kept := len(all) - 1
	for _, n := range []int{1, 2, 100, 122, 123, 124, 125, 126, 500, kept - note - 1, kept - note, kept - note + 1, kept, kept + 1} {
		got, err := s.Tail(1, 1, n)
		if err != nil {
			t.Fatal(err)
		}
		want := all[max(0, len(all)-n):]
		if n > kept-note { // reaches into the head: the note is one line more
			want = all[max(0, len(all)-n-1):]
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("the last %d: %d lines, want %d, from %.20q", n, len(got), len(want), got[0].Text)
		}
	}
}

func TestRemovedWhileRead(t *testing.T) {
	s := Open(t.TempDir(), 1)
	w := mustWriter(t, s, 1, 1)
	for i := range 500 {
		write(t, w, 0, Stdout, fmt.Sprint(i, " ", strings.Repeat("x", 1000)))
	}
	closeLog(t, w)
	n := 0
	err := s.Follow(t.Context(), 1, 1, Options{Follow: true}, func(Line) error {
		n++
		return s.Remove(1)
	})
	if err != nil || n == 0 || n >= 500 {
		t.Errorf("%d lines, %v", n, err)
	}
}
