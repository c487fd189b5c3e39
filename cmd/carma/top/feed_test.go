package top

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"carma/runner/api"
)

type taskOf = api.Task

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// TestFeed checks that without changes only the tasks on GPUs are read often, and all tasks
// from time to time. After an event all are read soon. The loss of the daemon is shown, and its
// return.
func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := lab()
		f.watch = make(chan api.Task)
		var got []tea.Msg
		feed := newFeed(f, 2*time.Second, func(m tea.Msg) {
			f.mu.Lock()
			defer f.mu.Unlock()
			got = append(got, m)
		})
		feed.want = []int64{24, 23}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); feed.run(ctx) }()
		time.Sleep(60 * time.Second)
		synctest.Wait()
		f.mu.Lock()
		if all, some := f.asked["tasks "], f.asked["tasks "+placed]; all > 5 || all < 4 || some < 20 || some > 30 {
			t.Errorf("in a minute all tasks were asked for %d times, those with a place %d times", all, some)
		}
		if n := f.asked["why 24"]; n < 3 || n > 5 || f.asked["why 23"] == 0 || f.asked["why 17"] > 0 {
			t.Errorf("expected starts were asked for %v", f.asked)
		}
		if f.asked["watch"] != 1 {
			t.Errorf("%d streams of events", f.asked["watch"])
		}
		f.asked, got = map[string]int{}, nil
		f.mu.Unlock()
		for range 100 {
			f.watch <- f.tasks[0]
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		f.mu.Lock()
		if f.asked["tasks "] != 1 {
			t.Errorf("after events all tasks were asked for %d times", f.asked["tasks "])
		}
		events := 0
		for _, m := range got {
			if _, ok := m.(changed); ok {
				events++
			}
		}
		if events == 0 || events > 3 {
			t.Errorf("100 events at once came in %d messages", events)
		}
		f.away, got = true, nil
		f.mu.Unlock()
		close(f.watch)
		time.Sleep(4 * time.Second)
		synctest.Wait()
		f.mu.Lock()
		if l, ok := got[len(got)-1].(lost); !ok || !errors.As(l.err, new(*api.NoDaemonError)) {
			t.Errorf("a lost daemon: %v", got)
		}
		f.away, f.watch = false, make(chan api.Task)
		f.mu.Unlock()
		time.Sleep(4 * time.Second)
		synctest.Wait()
		f.mu.Lock()
		if s, ok := got[len(got)-1].(snapshot); !ok || f.asked["watch"] < 2 {
			t.Errorf("the daemon is back: %v, %v", s, f.asked)
		}
		f.mu.Unlock()
		cancel()
		<-ended
	})
}

// TestLost: while no daemon answers, the screen does not change and is marked as old;
// then everything returns without a key.
func TestLost(t *testing.T) {
	f := lab()
	m := screenOf(t, f, 80, 24)
	now := noon.Add(10 * time.Second)
	m.now = func() time.Time { return now }
	m.Update(lost{&api.NoDaemonError{Socket: "/run/carma.sock", Err: errors.New("refused")}})
	now = noon.Add(time.Hour)
	text := picture(t, m)
	if !strings.Contains(text, "! no daemon answers since 12:00:10; what is shown is old; trying again") || !strings.Contains(text, "12:00:10\n") || !strings.Contains(text, "1h40m") {
		t.Error(text)
	}
	m.Update(snapshot{info: f.info, gpus: f.gpus, tasks: f.tasks, whole: true})
	if text := picture(t, m); strings.Contains(text, "no daemon") || !strings.Contains(text, "the daemon is back") {
		t.Error(text)
	}
}

// TestEvents checks that an event changes the state of a task at once, but not its place in the
// queue. A task that has ended is still shown for some time.
func TestEvents(t *testing.T) {
	f := lab()
	m := screenOf(t, f, 120, 40)
	now := noon
	m.now = func() time.Time { return now }
	queued := f.tasks[2]
	queued.Position, queued.Waits = 0, ""
	m.Update(changed{queued})
	if m.tasks[23].Position != 2 || m.tasks[23].Waits == "" {
		t.Error("an event without a place takes the place away")
	}
	done := f.tasks[len(f.tasks)-1]
	done.Phase, done.Ended = "succeeded", noon
	m.Update(changed{done, {ID: 99, Phase: "cancelled"}})
	if text := picture(t, m); !strings.Contains(text, "succeeded") || m.tasks[99] != nil {
		t.Error(text)
	}
	now = noon.Add(goneFor + time.Second)
	m.Update(tick(now))
	if text := picture(t, m); strings.Contains(text, "succeeded") || m.tasks[17] != nil {
		t.Error(text)
	}
}
