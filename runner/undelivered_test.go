package runner

import (
	"strings"
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/request"
)

// TestUndelivered checks that only the owner of a task and administrators see that a message
// about it was not delivered, with the reason and without the channel's secrets. After the
// delivery the note is gone.
func TestUndelivered(t *testing.T) {
	box := newMailbox(t)
	box.fail = true
	g := newRig(t, posting())
	g.script("bad", printing(3, "ValueError: shapes"))
	owner := request.Caller{UID: 4001, GID: 4001, Name: "ada", Home: "/tmp"}
	if err := g.Runner.channels.Set(request.WithCaller(g.ctx(), owner), api.NotifySettings{Channels: []api.NotifyChannel{box.channel("phone")}}); err != nil {
		t.Fatal(err)
	}
	sub, err := g.admission.Submit(g.ctx(), owner, api.Submit{Image: "bad", Mem: int64(2 * units.GiB), Visibility: access.VisibilityOpen})
	if err != nil {
		t.Fatal(err)
	}
	ref := model.TaskID(sub.ID).String()
	g.finished(ref)
	as := func(c request.Caller) []string {
		t.Helper()
		task, err := g.query.Task(request.WithLazyCaller(g.ctx(), func() request.Caller { return c }), ref)
		if err != nil {
			t.Fatal(err)
		}
		return task.Undelivered
	}
	g.eventually("the failure", func() bool { return len(as(owner)) == 1 })
	line := as(owner)[0]
	if !strings.HasPrefix(line, `phone: its message "failed" waits, tried again at `) || !strings.Contains(line, "502") || strings.Contains(line, "secret") || strings.Contains(line, "127.0.0.1") {
		t.Errorf("the owner sees %q", line)
	}
	if root := as(request.Caller{Name: "root"}); len(root) != 1 || root[0] != line {
		t.Errorf("root sees %q", root)
	}
	if bela := as(request.Caller{UID: 4002, GID: 4002, Name: "bela"}); len(bela) > 0 {
		t.Errorf("another user sees %q", bela)
	}
	if all, err := g.api.Tasks(g.ctx(), api.ListOptions{All: true}); err != nil || len(all) != 1 || len(all[0].Undelivered) > 0 {
		t.Errorf("a list has it: %v", err)
	}
	box.mu.Lock()
	box.fail = false
	box.mu.Unlock()
	g.eventually("the message", func() bool { return len(as(owner)) == 0 && len(box.all()) == 1 })
}
