package runner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/request"
	"carma/runner/waitreason"
	"carma/runner/web"

	"golang.org/x/sync/semaphore"
)

// texts returns the lines of a history, each with its kind.
func texts(h api.History) string {
	var all []string
	for _, l := range h.Lines {
		all = append(all, l.Kind+": "+l.Text)
	}
	return strings.Join(all, "\n")
}

func (g *rig) historyOf(ref string) api.History {
	g.t.Helper()
	h, err := g.api.History(g.ctx(), ref)
	if err != nil {
		g.t.Fatal(err)
	}
	return h
}

// inOrder returns the first part that does not follow the previous parts in text.
func inOrder(text string, parts ...string) string {
	for _, p := range parts {
		i := strings.Index(text, p)
		if i < 0 {
			return p
		}
		text = text[i+len(p):]
	}
	return ""
}

// TestHistory checks that a history contains the journal's events and decisions about its task,
// in order, and no others.
func TestHistory(t *testing.T) {
	l := newLab(t, 2, 8)
	l.canSuspend()
	now := l.Clock.Now
	l.happens(model.HostsFound{At: now(), Hosts: []model.HostInfo{{Total: 512 * units.GiB, Memory: 512 * units.GiB}}})
	l.happens(model.SuspendAsked{At: now(), Task: 5, By: "ada", Why: "a demo"}, model.SuspendDone{At: now(), Task: 5, Attempt: 1})
	before := l.historyOf("5")
	l.happens(model.ResumeAsked{At: now(), Task: 5, By: "ada"}, model.Resumed{At: now(), Task: 5, Attempt: 1})
	l.happens(model.Started{At: now(), Task: 5, Attempt: 1}) // a daemon that adopts it
	if _, err := l.api.Stop(l.ctx(), "5", api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	l.finished("5")
	h := l.historyOf("5")
	text := texts(h)
	missing := inOrder(text, "task-submitted: submitted by ada, on 1 GPU", "estimated: estimated at 38.0 GiB", "launch: launched on GPU ", "with 38.0 GiB booked", "started: its program runs",
		"suspend-asked: ada asked to suspend it: a demo", "suspend: is taken off its GPUs", "suspended: is suspended", "resume-asked: ada asked to resume it", "resumed: runs again", "cancel: is to end", "exited: ended: stopped by carma", "finish: cancelled")
	if missing != "" || strings.Count(text, "its program runs") != 1 {
		t.Errorf("%q is missing, or it runs twice:\n%s", missing, text)
	}
	if !slices.Equal(before.Lines, h.Lines[:len(before.Lines)]) || len(before.Lines) < 5 {
		t.Errorf("read on, it differs:\n%s\n--\n%s", texts(before), text)
	}
	l.lives.kept = nil // as after a start of the daemon
	if again := l.historyOf("5"); texts(again) != text {
		t.Errorf("read anew, it differs:\n%s\n--\n%s", texts(again), text)
	}
	if waits := l.historyOf("11"); waits.Waits == "" || waits.LeftOut != 0 || waits.Unread != nil || len(waits.Lines) != 2 {
		t.Errorf("a waiting one: %+v", waits)
	}
	held := texts(l.historyOf("held-back"))
	if missing := inOrder(held, "hold-changed: held by root: until Monday"); missing != "" {
		t.Errorf("%q is missing:\n%s", missing, held)
	}
	for i := 1; i < len(h.Lines); i++ {
		if h.Lines[i].At.Before(h.Lines[i-1].At) || h.Lines[i].At.IsZero() {
			t.Errorf("line %d is at %s", i, h.Lines[i].At)
		}
	}
}

// TestHistoryLines checks lines about hardware that the test machine does not have.
func TestHistoryLines(t *testing.T) {
	l := newLab(t, 2, 0)
	list, err := l.ListGPUs(l.ctx())
	if err != nil {
		t.Fatal(err)
	}
	a, b := model.GPUID(list[0].UUID), model.GPUID(list[1].UUID)
	grants := []model.Grant{{GPU: b, Memory: 3 * units.GiB}}
	high, gone := model.High, model.Reason{Code: model.ReasonOOM, Cause: &model.Reason{Code: model.ReasonWantedMore, Need: 8 * units.GiB, Have: 3 * units.GiB}}
	for want, d := range map[string]model.Decision{
		"comes back on GPU 1 with 3.0 GiB booked, moved from GPU 0":                                             model.Resume{Task: 4, From: []model.GPUID{a}, Grants: grants},
		"comes back on GPU 1 with 3.0 GiB booked":                                                               model.Resume{Task: 4, From: []model.GPUID{b}, Grants: grants},
		"its booking changed: on GPU 1 with 3.0 GiB booked":                                                     model.GrantChanged{Task: 4, Grants: grants},
		"launched on GPUs 0, 1 with 3.0 GiB booked on each":                                                     model.Launch{Task: 4, Grants: append(slices.Clone(grants), model.Grant{GPU: a, Memory: 3 * units.GiB})},
		"launched without a GPU; host memory 2.0 GiB; processors 1.5":                                           model.Launch{Task: 4, Host: model.HostShare{Memory: 2 * units.GiB, CPUs: 1500}},
		"goes back to the queue, to get 8.0 GiB: GPU out of memory: it wanted 8.0 GiB and had 3.0 GiB reserved": model.Requeue{Task: 4, Need: 8 * units.GiB, Reason: gone},
		"may go on: what it waited for has come":                                                                model.Release{Task: 4},
		"":                                                                                                      model.Launch{Task: 5},
	} {
		if got := l.decisionText(4, d); got.Text != want {
			t.Errorf("%q, want %q", got.Text, want)
		}
	}
	for want, ev := range map[string]model.Event{
		"ada changed what was asked for: priority high": model.TaskUpdated{Task: 4, By: "ada", Change: model.TaskUpdate{Priority: &high}},
		"root moves it to GPU 1":                        model.Pinned{Task: 4, By: "root", GPUs: []model.GPUID{b}},
		"could not come back: the driver":               model.Resumed{Task: 4, Failure: "the driver"},
		"ada sent it back to the queue: mine first":     model.RequeueRequested{Task: 4, By: "ada", Why: "mine first"},
		"released by ada":                               model.HoldChanged{Task: 4, By: "ada"},
		"":                                              model.HoldChanged{Task: 44, By: "ada"},
	} {
		if got := l.eventText(4, ev, map[int]bool{}); got.Text != want {
			t.Errorf("%q, want %q", got.Text, want)
		}
	}
}

// TestHistoryIsPrivate checks that other users see the events, but no text from the program.
func TestHistoryIsPrivate(t *testing.T) {
	l := newLab(t, 1, 0)
	owner := request.Caller{UID: 4001, GID: 4001, Name: "ada", Home: "/tmp"}
	sub, err := l.Submit(l.ctx(), owner, api.Submit{Image: "broken:1", Mem: int64(2 * units.GiB)})
	if err != nil {
		t.Fatal(err)
	}
	id := model.TaskID(sub.ID).String()
	l.finished(id)
	ada, bela := l.visit(web.User{UID: 4001, GID: 4001, Name: "ada"}, false), l.visit(web.User{UID: 4002, GID: 4002, Name: "bela"}, false)
	_, hers := ada.ask("GET", "/v1/tasks/"+id+"/history", "")
	status, theirs := bela.ask("GET", "/v1/tasks/"+id+"/history", "")
	if !strings.Contains(hers, "ValueError") {
		t.Errorf("her own: %s", hers)
	}
	if status != 200 || strings.Contains(theirs, "ValueError") || !strings.Contains(theirs, "exit code 3") {
		t.Errorf("another's: %d %s", status, theirs)
	}
}

// TestHistoryOfLongLife checks that a history with many lines contains the first and the last
// ones, that only the beginning and the end of a long journal are read, and that the missing
// part is reported.
func TestHistoryOfLongLife(t *testing.T) {
	l := newLab(t, 1, 4)
	const changes = 300
	var events []model.Event
	for i := range changes {
		events = append(events, model.QueueMoved{At: l.Clock.Now(), Task: 4, By: "ada", Last: i%2 == 0})
	}
	l.happens(events...)
	if h := l.historyOf("4"); len(h.Lines) != happenedMost {
		t.Errorf("%d lines of events whose decisions are not stored yet", len(h.Lines))
	}
	l.happens(model.QueueMoved{At: l.Clock.Now(), Task: 4, By: "ada"})
	h := l.historyOf("4")
	if len(h.Lines) != happenedMost || h.Gap != happenedFirst || h.LeftOut < changes-happenedMost || h.Unread != nil {
		t.Errorf("%d lines, gap after %d, %d left out, unread %v", len(h.Lines), h.Gap, h.LeftOut, h.Unread)
	}
	l.lives = taskHistories{turn: semaphore.NewWeighted(1), head: 6, tail: 10}
	h = l.historyOf("4")
	if h.Unread == nil || h.Unread.Until.Before(h.Unread.From) || len(h.Lines) > 16 || len(h.Lines) < 10 || h.Lines[0].Kind != "task-submitted" {
		t.Errorf("%d lines, unread %v:\n%.500s", len(h.Lines), h.Unread, texts(h))
	}
}

// TestHistoryOfUndecided: if the decisions of many events are not stored yet, only the last
// events are read, and the history says that there are others.
func TestHistoryOfUndecided(t *testing.T) {
	l := newLab(t, 1, 4)
	l.lives = taskHistories{turn: semaphore.NewWeighted(1), head: 6, tail: 10}
	var events []model.Event
	for i := range 300 {
		events = append(events, model.QueueMoved{At: l.Clock.Now(), Task: 4, By: "ada", Last: i%2 == 0})
	}
	l.happens(events...)
	if h := l.historyOf("4"); h.Unread == nil || len(h.Lines) > 16 {
		t.Errorf("%d lines, unread %v", len(h.Lines), h.Unread)
	}
}

// TestHistoryGivesUp checks that a caller who waits for another request for a history or a
// timeline can cancel.
func TestHistoryGivesUp(t *testing.T) {
	l := newLab(t, 1, 4)
	if err := l.lives.turn.Acquire(l.ctx(), 1); err != nil {
		t.Fatal(err)
	}
	if err := l.timelines.turn.Acquire(l.ctx(), 1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(l.ctx(), 20*time.Millisecond)
	defer cancel()
	if _, err := l.History(ctx, "4"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("history: %v", err)
	}
	if _, err := l.Timeline(ctx, time.Time{}, time.Time{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("timeline: %v", err)
	}
	l.lives.turn.Release(1)
	l.timelines.turn.Release(1)
	l.historyOf("4")
}

// TestHistoryOfWaiting: the reasons for which a task waited are among its lines, without
// duplicates, until it was launched.
func TestHistoryOfWaiting(t *testing.T) {
	l := newLab(t, 1, 4)
	look := func() {
		t.Helper()
		if err := l.waited.Record(l.ctx()); err != nil {
			t.Fatal(err)
		}
	}
	look()
	look()
	full := texts(l.historyOf("6"))
	if strings.Count(full, "waits: waits: ") != 1 || inOrder(full, "estimated: ", "waits: waits: GPU 0 memory ") != "" {
		t.Errorf("the card is full:\n%s", full)
	}
	l.happens(model.LaunchingPaused{At: l.Clock.Now(), Closure: &model.Cordon{By: "root", Why: "a repair"}})
	look()
	paused := texts(l.historyOf("6"))
	if missing := inOrder(paused, "waits: waits: GPU 0 memory ", "waits: waits: ", "a repair"); missing != "" {
		t.Errorf("launching is paused:\n%s", paused)
	}
	l.happens(model.LaunchingPaused{At: l.Clock.Now()})
	for _, ref := range []string{"4", "5"} {
		if _, err := l.api.Stop(l.ctx(), ref, api.StopRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	l.running("6")
	look()
	if missing := inOrder(texts(l.historyOf("6")), "waits: waits: ", "a repair", "launch: launched on GPU 0"); missing != "" {
		t.Errorf("%q is missing:\n%s", missing, texts(l.historyOf("6")))
	}
	long := taskHistory{left: 5}
	for i := range happenedMost {
		long.lines = append(long.lines, historyLine{Happened: api.Happened{At: time.Unix(int64(10*i), 0)}})
	}
	all, gap := long.merged([]waitreason.Line{{Happened: api.Happened{At: time.Unix(15, 0)}}, {Happened: api.Happened{At: time.Unix(1e9, 0)}}})
	if len(all) != happenedMost+2 || gap != happenedFirst+1 || !slices.IsSortedFunc(all, func(a, b historyLine) int { return a.At.Compare(b.At) }) {
		t.Errorf("%d lines, gap after %d", len(all), gap)
	}
}
