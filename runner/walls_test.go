package runner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/access"
	"carma/runner/admission"
	"carma/runner/api"
	"carma/runner/machine"
	"carma/runner/request"
	"carma/runner/rights"
)

// Two users, and one in the admin group.
var (
	ann  = request.Caller{UID: 20001, GID: 20001, Name: "ann"}
	bob  = request.Caller{UID: 20002, GID: 20002, Name: "bob"}
	oper = request.Caller{UID: 20003, GID: 20003, Name: "oper", Groups: []string{"lab"}}
)

// as returns the context of a request by a caller.
func (g *rig) as(who request.Caller) context.Context { return request.WithCaller(g.ctx(), who) }

func (g *rig) runAs(who request.Caller, s api.Submit) string {
	g.t.Helper()
	sub, err := g.admission.Submit(g.ctx(), who, s)
	if err != nil {
		g.t.Fatal(err)
	}
	return model.TaskID(sub.ID).String()
}

// refusedAs checks that a submission is refused with a status and words.
func (g *rig) refusedAs(who request.Caller, s api.Submit, status int, words string) {
	g.t.Helper()
	var refused *request.Error
	_, err := g.admission.Submit(g.ctx(), who, s)
	if !errors.As(err, &refused) || refused.Status != status || !strings.Contains(refused.Text, words) || strings.ContainsRune(refused.Text, 0) {
		g.t.Errorf("%+v: %v, want %d and %q", s, err, status, words)
	}
}

// TestVisibility: the parts of a private and of an open task that others see, and that its
// owner and admins see.
func TestVisibility(t *testing.T) {
	g := newRig(t, func(g *rig) { g.opt.AdminGroup = "lab" })
	g.script("train", printing(3, "ValueError: the key s3cret is wrong"))
	sub := api.Submit{Image: "train", Mem: int64(units.GiB), Env: []string{"WANDB_API_KEY=s3cret", "A="}}
	private := g.runAs(ann, sub)
	sub.Visibility = access.VisibilityOpen
	open := g.runAs(ann, sub)
	g.finished(private)
	g.finished(open)
	all := func(who request.Caller, ref string) string {
		t.Helper()
		var text []string
		add := func(task api.Task) {
			text = append(text, strings.Join(task.Submit.Env, " "), task.Reason)
			for _, a := range task.Attempts {
				text = append(text, a.Message)
			}
		}
		one, err := g.query.Inspect(g.as(who), ref)
		if err != nil {
			t.Fatal(err)
		}
		add(one)
		list, _, err := g.query.Page(g.as(who), api.ListOptions{All: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range list {
			if model.TaskID(task.ID).String() == ref {
				add(task)
			}
		}
		why, err := g.query.Why(g.as(who), ref)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(append(text, why.Summary), "\n")
	}
	for _, c := range []struct {
		who  request.Caller
		ref  string
		sees bool
	}{{ann, private, true}, {oper, private, true}, {request.Caller{}, private, true}, {bob, private, false}, {bob, open, true}} {
		text := all(c.who, c.ref)
		if strings.Contains(text, "s3cret") != c.sees {
			t.Errorf("%s sees of task %s:\n%s", c.who.Name, c.ref, text)
		}
		if !c.sees && (!strings.Contains(text, "WANDB_API_KEY=***") || !strings.Contains(text, "exit code 3")) {
			t.Errorf("%s should see names and the exit code:\n%s", c.who.Name, text)
		}
		rec, err := g.find.Find(c.ref)
		if err != nil {
			t.Fatal(err)
		}
		var refused *request.Error
		if err := g.authz.AuthorizeReading(g.as(c.who), rec); (err == nil) != c.sees || err != nil && (!errors.As(err, &refused) || refused.Status != 403) {
			t.Errorf("%s, output of task %s: %v", c.who.Name, c.ref, err)
		}
	}
	if rec, _ := g.find.Find(private); rec.Submit.Env[0] != "WANDB_API_KEY=s3cret" {
		t.Errorf("the record itself has changed: %q", rec.Submit.Env)
	}
	if task, err := g.query.Task(g.ctx(), private); err != nil || task.Submit.Env[0] != "WANDB_API_KEY=***" || !task.EnvHidden {
		t.Errorf("nobody in particular sees %q (%v)", task.Submit.Env, err)
	}
}

// TestVisibilityDefault: the daemon's default applies to tasks without a visibility of their
// own. The task keeps it.
func TestVisibilityDefault(t *testing.T) {
	g := newRig(t, func(g *rig) { g.opt.Open = true })
	g.script("train", printing(0))
	seen := g.runAs(ann, api.Submit{Image: "train", Env: []string{"A=1"}})
	hidden := g.runAs(ann, api.Submit{Image: "train", Env: []string{"A=1"}, Visibility: access.VisibilityPrivate})
	for ref, want := range map[string]string{seen: "A=1", hidden: "A=***"} {
		task, err := g.query.Task(g.as(bob), ref)
		if err != nil || task.Submit.Env[0] != want {
			t.Errorf("task %s shows %q (%v), want %q", ref, task.Submit.Env, err, want)
		}
	}
	g.refusedAs(ann, api.Submit{Image: "train", Visibility: "public"}, 422, "choose private or open")
}

// TestAdminsOnly: only admins may set the simulated time and ask for a proof.
func TestAdminsOnly(t *testing.T) {
	g := newRig(t, func(g *rig) { g.opt.AdminGroup = "lab" })
	for who, ok := range map[*request.Caller]bool{&ann: false, &oper: true, {Name: "root"}: true} {
		if err := g.authz.AuthorizeServer(*who, rights.Speed, "", ""); (err == nil) != ok {
			t.Errorf("%s: %v", who.Name, err)
		}
	}
}

// TestImpossibleTexts: a text that no program or file system can have is
// refused in one line, before anything is started (F13).
func TestImpossibleTexts(t *testing.T) {
	g := newRig(t)
	g.script("ok", printing(0))
	home := t.TempDir()
	for _, s := range []api.Submit{
		{Image: "ok\x00"}, {Image: "ok", Command: []string{"a", "b\x00c"}}, {Image: "ok", Entrypoint: []string{"\x00"}},
		{Image: "ok", Env: []string{"A=b\x00"}}, {Image: "ok", ContainerOptions: api.ContainerOptions{WorkDir: "/a\x00"}}, {Image: "ok", Labels: map[string]string{"a": "\x00"}},
		{Image: "ok", Mounts: []api.Mount{{Source: home + "\x00", Target: "/x"}}}, {Image: "ok", Mounts: []api.Mount{{Source: home, Target: "/x\x00"}}},
	} {
		g.refusedAs(request.Caller{Name: "root"}, s, 422, "NUL")
	}
	g.refusedAs(request.Caller{Name: "root"}, api.Submit{Image: "ok", Env: []string{"SECRET=" + strings.Repeat("x", 128<<10-1)}}, 422, `"SECRET": 131078 bytes`)
	g.refusedAs(request.Caller{Name: "root"}, api.Submit{Image: "ok", Mounts: []api.Mount{{Source: home, Target: "/"}}}, 422, "the container's root")
}

// TestShares: a task's share of the machine has a default and a maximum. A larger request is
// refused, with the nearest possible value (F5).
func TestShares(t *testing.T) {
	g := newRig(t)
	live := *g.live()
	live.Bounds, _ = machine.Bounds{Default: machine.Share{Pids: 100}}.On(machine.Share{HostMem: 100 * units.GiB, CPUs: 8, Pids: 1000})
	g.set.Store(&live)
	g.script("ok", printing(0))
	for words, s := range map[string]api.Submit{
		"--shm-size 102400.0 GiB: at most 90.0 GiB":             {ContainerOptions: api.ContainerOptions{ShmSize: 100 << 40}},
		"--shm-size 3.0 GiB: at most 2.0 GiB":                   {ContainerOptions: api.ContainerOptions{ShmSize: 3 << 30}, HostMem: 2 << 30},
		"--host-mem 91.0 GiB: a task may have at most 90.0 GiB": {HostMem: 91 << 30},
		"--host-mem 1 MiB":                                      {HostMem: 1 << 20},
		"--cpus 9: a task may have at most 8":                   {CPUs: 9},
		"--pids 501: a task may have at most 500":               {ContainerOptions: api.ContainerOptions{Pids: 501}},
	} {
		s.Image = "ok"
		g.refusedAs(ann, s, 422, words)
	}
	if _, err := (machine.Bounds{Most: machine.Share{Pids: 2000}}).On(machine.Share{HostMem: units.GiB, CPUs: 1, Pids: 1000}); err == nil || !strings.Contains(err.Error(), "max-pids: more than 1000") {
		t.Errorf("a setting above the machine's own: %v", err)
	}
	if _, err := (machine.Bounds{Default: machine.Share{CPUs: 3}, Most: machine.Share{CPUs: 2}}).On(machine.Share{HostMem: units.GiB, CPUs: 4, Pids: 1000}); err == nil || !strings.HasPrefix(err.Error(), "cpus: more than 2") {
		t.Errorf("a default above the most: %v", err)
	}
}

// TestPerUser: one user's queue is bounded in tasks, bytes and priority.
// Others, and admins, are not limited by it (F12, U6).
func TestPerUser(t *testing.T) {
	g := newRig(t, func(g *rig) {
		g.opt.AdminGroup = "lab"
		g.opt.PerUser = admission.PerUser{Tasks: 4, Bytes: 8 * units.KiB, High: 1, MayHigh: "all"}
	})
	g.script("train", untilStopped)
	later := api.Submit{Image: "train", Mem: int64(units.GiB), Delay: time.Hour}
	high := later
	high.Priority = "high"
	first := g.runAs(ann, high)
	g.refusedAs(ann, high, 429, "priority high")
	g.runAs(ann, later)
	large := later
	large.Env = []string{"A=" + strings.Repeat("x", 8<<10)}
	g.refusedAs(ann, large, 429, "user-bytes")
	if _, err := g.admission.SubmitAll(g.ctx(), ann, api.Submission{Tasks: []api.Submit{later, later, later}}); err == nil || !strings.Contains(err.Error(), "5 unfinished tasks") {
		t.Errorf("five tasks where four may be: %v", err)
	}
	g.runAs(ann, later)
	g.runAs(ann, later)
	g.refusedAs(ann, later, 429, "user-tasks")
	g.runAs(bob, later)
	for range 6 {
		g.runAs(oper, high)
	}
	if _, err := g.control.Stop(g.ctx(), ann, first, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	g.finished(first)
	g.runAs(ann, later) // it takes the place of the stopped one

	g.restart() // the journal restores the counts
	g.refusedAs(ann, later, 429, "user-tasks")
	g.opt.PerUser.MayHigh = "admins"
	g.Runner.set.Store(&Live{PerUser: g.opt.PerUser})
	g.refusedAs(bob, high, 403, "for admins")
}
