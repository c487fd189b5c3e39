package runner

import (
	"errors"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/machine"
	"carma/runner/request"
	"carma/runner/verify"
)

// blocker fills both GPUs, so that later submissions wait.
func (g *rig) blocker() string {
	g.t.Helper()
	g.script("busy", untilStopped)
	g.script("ok", printing(0, "done"))
	ref := g.run(api.Submit{Image: "busy", GPUs: 2, Exclusive: true})
	g.running(ref)
	return ref
}

func (g *rig) waiting(s api.Submit) string {
	g.t.Helper()
	s.Image = "ok"
	if s.Mem == 0 {
		s.Mem = int64(units.GiB)
	}
	return g.run(s)
}

func (g *rig) phase(ref string) api.Task {
	g.t.Helper()
	task, err := g.api.Task(g.ctx(), ref)
	if err != nil {
		g.t.Fatal(err)
	}
	return task
}

// refusedTo checks that a change is refused with a status and words.
func (g *rig) refusedTo(err error, status int, words string) {
	g.t.Helper()
	var refused *request.Error
	var answered *api.StatusError
	switch {
	case errors.As(err, &refused) && refused.Status == status && strings.Contains(refused.Text, words):
	case errors.As(err, &answered) && answered.Status == status && strings.Contains(answered.Detail, words):
	default:
		g.t.Errorf("%v, want %d and %q", err, status, words)
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestHeld checks that a held task is not launched, even after a restart, until it is released,
// and that its reason names the user and the comment.
func TestHeld(t *testing.T) {
	g := newRig(t)
	task := must[api.Task](t)
	blocker := g.blocker()
	held, other := g.waiting(api.Submit{}), g.waiting(api.Submit{})
	if got := task(g.api.Hold(g.ctx(), held, api.Note{Why: "the data is late"})); got.Phase != "held" || !strings.Contains(got.Waits, "held by root: the data is late") {
		t.Errorf("it is %s: %s", got.Phase, got.Waits)
	}
	g.asksToStop(blocker, api.StopRequest{})
	g.finished(other)
	g.restart()
	if got := g.phase(held); got.Phase != "held" || got.WaitsCode != "hold" {
		t.Errorf("after a restart it is %s: %s", got.Phase, got.Waits)
	}
	task(g.api.Release(g.ctx(), held))
	if got := g.finished(held); got.Phase != "succeeded" {
		t.Errorf("it has %s", got.Phase)
	}
	_, err := g.api.Release(g.ctx(), held)
	g.refusedTo(err, 409, "has ended; carma rerun")
	running := g.run(api.Submit{Image: "busy", Mem: int64(units.GiB)})
	g.running(running)
	_, err = g.api.Hold(g.ctx(), running, api.Note{})
	g.refusedTo(err, 409, "carma requeue --hold")
	_, err = g.api.Release(g.ctx(), running)
	g.refusedTo(err, 409, "is not held by anybody")
}

// TestRequeued: a running task is stopped and requeued, held or not, without losing an attempt.
func TestRequeued(t *testing.T) {
	g := newRig(t)
	task := must[api.Task](t)
	g.script("busy", untilStopped)
	ref := g.run(api.Submit{Image: "busy", Mem: int64(units.GiB)})
	g.running(ref)
	task(g.api.Requeue(g.ctx(), ref, api.RequeueRequest{Why: "room for the demo", Hold: true}))
	got := g.until(ref, "held", func(t api.Task) bool { return t.Phase == "held" })
	if first := got.Attempts[0]; first.Outcome != "stopped" && first.Outcome != "program" || !first.Blameless || !strings.Contains(first.Reason, "root sent it back to the queue: room for the demo") {
		t.Errorf("its first attempt: %+v", first)
	}
	_, err := g.api.Requeue(g.ctx(), ref, api.RequeueRequest{})
	g.refusedTo(err, 409, "does not run")
	g.restart()
	task(g.api.Update(g.ctx(), ref, api.Update{Mem: new(int64(3 * units.GiB)), GPUs: new(2)}))
	task(g.api.Release(g.ctx(), ref))
	again := g.running(ref)
	if last := again.Attempts[1]; last.Grant != int64(3*units.GiB) || len(last.GPUs) != 2 {
		t.Errorf("after its update it runs with %+v", last)
	}
	task(g.api.Requeue(g.ctx(), ref, api.RequeueRequest{}))
	g.until(ref, "running again", func(t api.Task) bool { return t.Phase == "running" && len(t.Attempts) == 3 })
}

// TestUpdated: possible and refused changes of a task.
func TestUpdated(t *testing.T) {
	g := newRig(t)
	task := must[api.Task](t)
	blocker := g.blocker()
	first := g.waiting(api.Submit{Labels: map[string]string{"a": "1", "b": "2"}, Name: "one"})
	second := g.waiting(api.Submit{})
	got := task(g.api.Update(g.ctx(), second, api.Update{
		Name: new("two"), Priority: new("high"), Mem: new(int64(5 * units.GiB)), TimeLimit: new(time.Hour), Retries: new(4), Labels: map[string]string{"b": "3"},
	}))
	if s := got.Submit; got.Name != "two" || s.Priority != "high" || got.Need != int64(5*units.GiB) || s.TimeLimit != time.Hour || s.Retries != 4 || s.Labels["b"] != "3" || got.Position != 1 {
		t.Errorf("it is %+v", got)
	}
	got = task(g.api.Update(g.ctx(), "one", api.Update{Labels: map[string]string{"c": "x"}, Unlabel: []string{"a"}}))
	if l := got.Submit.Labels; len(l) != 2 || l["b"] != "2" || l["c"] != "x" {
		t.Errorf("its labels are %v", l)
	}
	for what, c := range map[string]struct {
		ref    string
		update api.Update
		status int
		words  string
	}{
		"a name that is taken":   {first, api.Update{Name: new("two")}, 409, "is called two already"},
		"too much memory":        {first, api.Update{Mem: new(int64(500 * units.GiB))}, 422, "--mem"},
		"too many GPUs":          {first, api.Update{GPUs: new(3)}, 422, "--gpus"},
		"an unknown model":       {first, api.Update{EstModel: new("resnet51"), Mem: new(int64(0))}, 422, "resnet51"},
		"memory of a running":    {blocker, api.Update{Mem: new(int64(units.GiB))}, 409, "carma requeue --hold"},
		"after a later one":      {first, api.Update{After: &[]api.Dependency{{Task: second}}}, 422, "submitted after"},
		"after itself":           {first, api.Update{After: &[]api.Dependency{{Task: first}}}, 422, "a task can only wait for earlier ones"},
		"one that is not there":  {"nobody", api.Update{}, 404, "nobody"},
		"after one that ran":     {blocker, api.Update{After: &[]api.Dependency{}}, 409, "has been launched"},
		"not of words there are": {first, api.Update{Priority: new("urgent")}, 422, ""},
	} {
		_, err := g.api.Update(g.ctx(), c.ref, c.update)
		if err == nil {
			t.Errorf("%s is taken", what)
			continue
		}
		g.refusedTo(err, c.status, c.words)
	}
	// The task first gets a dependency, which is then removed.
	if got := task(g.api.Update(g.ctx(), "two", api.Update{After: &[]api.Dependency{{Task: "one"}}})); got.Phase != "held" || !strings.Contains(got.Waits, "task 2") {
		t.Errorf("it is %s: %s", got.Phase, got.Waits)
	}
	if got := task(g.api.Update(g.ctx(), "two", api.Update{After: &[]api.Dependency{}})); got.Phase != "queued" {
		t.Errorf("it is %s: %s", got.Phase, got.Waits)
	}
	g.restart()
	if got := g.phase("two"); got.Submit.Priority != "high" || got.Need != int64(5*units.GiB) {
		t.Errorf("after a restart it is %+v", got)
	}
	// A running task's time limit counts from its start.
	task(g.api.Update(g.ctx(), blocker, api.Update{TimeLimit: new(time.Millisecond)}))
	if got := g.finished(blocker); got.Phase != "failed" || got.ReasonCode != "time-limit" {
		t.Errorf("it has %s: %s", got.Phase, got.Reason)
	}
	g.finished("one")
	g.finished("two")
	g.stop()
	if v, err := verify.Journal(g.dir, "test"); err != nil || len(v.Faults) > 0 {
		t.Errorf("verify: %+v, %v", v, err)
	}
}

// TestHostUpdated checks that the host memory and processors of a waiting task can be changed,
// also before a restart, and that its container gets the new values.
func TestHostUpdated(t *testing.T) {
	g := newRig(t, func(g *rig) { g.opt.Bounds.All = machine.Share{HostMem: units.GiB, CPUs: 1} })
	task := must[api.Task](t)
	blocker := g.blocker()
	ref := g.waiting(api.Submit{HostMem: 1 << 30, CPUs: 0.5})
	for _, u := range []api.Update{{HostMem: new(int64(64 << 20))}, {HostReserve: new(int64(32 << 20)), CPUs: new(0.75), CPUsReserve: new(0.25)}} {
		task(g.api.Update(g.ctx(), ref, u))
	}
	for what, c := range map[string]struct {
		ref    string
		update api.Update
		status int
		words  string
	}{
		"more than the tasks have":   {ref, api.Update{HostMem: new(int64(2 * units.GiB)), HostReserve: new(int64(2 * units.GiB))}, 422, "--host-mem"},
		"more than all processors":   {ref, api.Update{CPUs: new(1e6)}, 422, "--cpus"},
		"no program starts in that":  {ref, api.Update{HostMem: new(int64(1 << 20))}, 422, "--host-mem 1 MiB"},
		"a reserve above the limit":  {ref, api.Update{HostReserve: new(int64(1 << 30))}, 422, "--host-reserve"},
		"processors below the least": {ref, api.Update{CPUs: new(0.001), CPUsReserve: new(0.0)}, 422, "--cpus 0.001"},
	} {
		_, err := g.api.Update(g.ctx(), c.ref, c.update)
		if err == nil {
			t.Errorf("%s is taken", what)
			continue
		}
		g.refusedTo(err, c.status, c.words)
	}
	g.restart()
	if _, err := g.api.Stop(g.ctx(), blocker, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	got := g.finished(ref)
	if s := got.Submit; s.HostMem != 64<<20 || s.HostReserve != 32<<20 || s.CPUs != 0.75 || s.CPUsReserve != 0.25 {
		t.Errorf("it asks for %+v", s)
	}
	if h := got.Attempts[0].Host; h.Memory != 32<<20 || h.Limit != 64<<20 || h.CPUs != 0.25 {
		t.Errorf("it was launched with %+v", h)
	}
}

// TestMoved checks that only tasks of the same owner exchange their places.
func TestMoved(t *testing.T) {
	g := newRig(t)
	blocker := g.blocker()
	var refs []string
	for range 3 {
		refs = append(refs, g.waiting(api.Submit{}))
	}
	theirs := g.runAs(ann, api.Submit{Image: "ok", Mem: int64(units.GiB)})
	must[api.Task](t)(g.api.Move(g.ctx(), refs[2], api.MoveRequest{}))
	must[api.Task](t)(g.api.Move(g.ctx(), refs[0], api.MoveRequest{Last: true}))
	for ref, place := range map[string]int{refs[2]: 1, refs[1]: 2, refs[0]: 3, theirs: 4} {
		if got := g.phase(ref); got.Position != place {
			t.Errorf("task %s has place %d, want %d", ref, got.Position, place)
		}
	}
	_, err := g.api.Move(g.ctx(), blocker, api.MoveRequest{})
	g.refusedTo(err, 409, "is in no queue")
}

// TestChangesOfOthers checks that only the owner and admins can change a task, and that only
// admins can drain GPUs.
func TestChangesOfOthers(t *testing.T) {
	g := newRig(t)
	g.blocker()
	ref := g.runAs(ann, api.Submit{Image: "ok", Mem: int64(units.GiB)})
	ctx := g.ctx()
	for what, err := range map[string]error{
		"hold":    second(g.control.Hold(ctx, bob, ref, api.Note{})),
		"release": second(g.control.Release(ctx, bob, ref)),
		"requeue": second(g.control.Requeue(ctx, bob, ref, api.RequeueRequest{})),
		"move":    second(g.control.Move(ctx, bob, ref, api.MoveRequest{})),
		"update":  second(g.admission.Update(ctx, bob, ref, api.Update{Priority: new("low")})),
		"drain":   g.control.CloseGPUs(ctx, bob, api.CloseRequest{All: true}),
		"pause":   g.control.PauseLaunching(ctx, bob, api.CloseRequest{}),
	} {
		t.Log(what)
		g.refusedTo(err, 403, "you are bob")
	}
	if _, err := g.control.Hold(ctx, ann, ref, api.Note{}); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestClosed checks that drained GPUs and paused launching survive a restart, and that tasks
// show them as reasons.
func TestClosed(t *testing.T) {
	g := newRig(t)
	g.script("busy", untilStopped)
	gpus := must[[]api.GPU](t)
	closed := gpus(g.api.CloseGPUs(g.ctx(), api.CloseRequest{GPUs: []string{"1"}, Why: "loud fan", For: 10 * time.Hour, Move: true}))
	if c := closed[1].Closed; closed[0].Closed != nil || c == nil || !c.Move || c.By != "root" || c.Why != "loud fan" || c.Until.Sub(c.Since) != 10*time.Hour {
		t.Errorf("the GPUs are %+v", closed)
	}
	two := g.run(api.Submit{Image: "busy", GPUs: 2, Mem: int64(units.GiB)})
	one := g.run(api.Submit{Image: "busy", Mem: int64(units.GiB)})
	if got := g.running(one); got.Attempts[0].GPUs[0].Index != 0 {
		t.Errorf("it runs on %+v", got.Attempts[0].GPUs)
	}
	g.restart()
	why := must[api.Why](t)(g.api.Why(g.ctx(), two))
	if text := why.GPUs[1].Text; why.GPUs[1].Rule != "closed" || !strings.Contains(text, "is drained by root: loud fan") {
		t.Errorf("GPU 1 %s", text)
	}
	info := must[api.Info](t)
	if got := info(g.api.PauseLaunching(g.ctx(), api.CloseRequest{Why: "backup"})); got.Paused == nil || got.Paused.Why != "backup" {
		t.Errorf("paused: %+v", got.Paused)
	}
	gpus(g.api.CloseGPUs(g.ctx(), api.CloseRequest{All: true, Open: true}))
	g.restart()
	if got := g.phase(two); got.Phase != "queued" || !strings.Contains(got.Waits, "root paused launching: backup") {
		t.Errorf("it is %s: %s", got.Phase, got.Waits)
	}
	info(g.api.PauseLaunching(g.ctx(), api.CloseRequest{Open: true}))
	g.running(two)
	for _, q := range []api.CloseRequest{{}, {All: true, GPUs: []string{"0"}}} {
		_, err := g.api.CloseGPUs(g.ctx(), q)
		g.refusedTo(err, 422, "name GPUs, or all")
	}
	_, err := g.api.CloseGPUs(g.ctx(), api.CloseRequest{All: true, Open: true, Move: true})
	g.refusedTo(err, 422, "move is for GPUs that are drained")
	_, err = g.api.PauseLaunching(g.ctx(), api.CloseRequest{Move: true})
	g.refusedTo(err, 422, "carma drain --move")
	_, err = g.api.CloseGPUs(g.ctx(), api.CloseRequest{GPUs: []string{"7"}})
	g.refusedTo(err, 404, "no GPU 7")
}
