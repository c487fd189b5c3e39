package runner

import (
	"slices"
	"strings"
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/history"
	"carma/runner/request"
	"carma/runner/web"
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
	anew := history.New(history.Config{Journal: l.Journal, Find: l.find, Authz: l.authz, GPUs: l.gpus, Clock: l.Clock, Waited: l.waited, Why: l.query.Why})
	if again, err := anew.Of(l.ctx(), "5"); err != nil || texts(again) != text { // as after a start of the daemon
		t.Errorf("read anew, it differs:\n%s\n--\n%s, %v", texts(again), text, err)
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

// TestHistoryIsPrivate checks that other users see the events, but no text from the program.
func TestHistoryIsPrivate(t *testing.T) {
	l := newLab(t, 1, 0)
	owner := request.Caller{UID: 4001, GID: 4001, Name: "ada", Home: "/tmp"}
	sub, err := l.admission.Submit(l.ctx(), owner, api.Submit{Image: "broken:1", Mem: int64(2 * units.GiB)})
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
}
