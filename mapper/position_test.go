package mapper

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"

	"pgregory.net/rapid"
)

// day is a server in virtual time on which each task has its own run time.
type day struct {
	s     *State
	now   units.Instant
	last  model.TaskID
	runs  map[model.TaskID]time.Duration
	ends  map[model.TaskID]units.Instant
	begun map[model.TaskID]units.Instant
	had   map[string]time.Duration // GPU time of ended attempts, by user
}

func newDay(opt model.Options, gpus int) *day {
	l := &day{s: New(opt), now: units.Instant(time.Hour), runs: map[model.TaskID]time.Duration{}, ends: map[model.TaskID]units.Instant{}, begun: map[model.TaskID]units.Instant{}, had: map[string]time.Duration{}}
	var all []model.GPUInfo
	for i := range gpus {
		all = append(all, model.GPUInfo{ID: gpuID(i), Index: i, Capacity: 40 * units.GiB})
	}
	l.step(model.GPUsFound{At: l.now, GPUs: all})
	l.step(model.EngineChanged{At: l.now, Up: true})
	return l
}

func (l *day) step(ev model.Event) {
	for _, d := range l.s.Step(ev) {
		if d, ok := d.(model.Launch); ok {
			l.begun[d.Task], l.ends[d.Task] = l.now, l.now.Add(l.runs[d.Task])
			l.step(model.Started{At: l.now, Task: d.Task, Attempt: d.Attempt})
		}
	}
}

func (l *day) submit(run time.Duration, mem units.Bytes, r model.Request) model.TaskID {
	l.last++
	r.ID, r.GPUs = l.last, max(1, r.GPUs)
	l.runs[r.ID] = run
	l.step(model.TaskSubmitted{At: l.now, Request: r})
	l.step(model.Estimated{At: l.now, Task: r.ID, Estimate: model.Estimate{Memory: mem}, Expected: model.Expected{Loads: []interference.Load{{SMACT: 0.3, SMOCC: 0.2, DRAMA: 0.2, Step: 0.1}}}})
	return r.ID
}

// until lets tasks end and timers fire until an instant, and calls again after each end.
func (l *day) until(at units.Instant, again func(ended model.Task)) {
	for {
		first, due := model.TaskID(0), at
		for id, end := range l.ends {
			if end < due || end == due && first != 0 && id < first {
				first, due = id, end
			}
		}
		if wake, ok := l.s.NextTimer(); ok && max(wake, l.now) < due {
			l.now = max(wake, l.now)
			l.step(model.TimerFired{At: l.now})
			continue
		}
		l.now = due
		if first == 0 {
			return
		}
		t, _ := l.s.Task(first)
		ended := *t
		delete(l.ends, first)
		l.had[ended.User] += l.now.Sub(l.begun[first]) * time.Duration(ended.GPUs)
		l.step(model.Exited{At: l.now, Task: first, Attempt: ended.Last().N, Class: model.ExitOK})
		again(ended)
	}
}

func shared() model.Options {
	opt := DefaultOptions()
	opt.Order = model.OrderFairSJF
	return opt
}

// TestEqualGPUTime checks that users with equal weights get equal GPU time in a day, within 5
// %, for any number, length and size of their tasks.
func TestEqualGPUTime(t *testing.T) {
	for _, row := range []struct {
		name     string
		ada, bob time.Duration // of a task
		mem      units.Bytes   // memory of a task per GPU
		bobs     model.Request // further requests of bob's tasks
	}{
		{name: "two on a GPU", ada: 7 * time.Minute, bob: 65 * time.Minute, mem: 18 * units.GiB},
		{name: "one on a GPU", ada: 7 * time.Minute, bob: 65 * time.Minute, mem: 38 * units.GiB},
		{name: "long and short", ada: 4 * time.Hour, bob: 3 * time.Minute, mem: 38 * units.GiB},
		{name: "bob on two GPUs", ada: 20 * time.Minute, bob: 50 * time.Minute, mem: 38 * units.GiB, bobs: model.Request{GPUs: 2}},
		{name: "bob alone on three GPUs", ada: 20 * time.Minute, bob: 30 * time.Minute, mem: 38 * units.GiB, bobs: model.Request{GPUs: 3, Exclusive: true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newDay(shared(), 4)
			noon := l.now
			submit := func(user string) {
				r, run := model.Request{}, row.ada
				if user == "bob" {
					r, run = row.bobs, row.bob
				}
				r.User, r.Kind = user, user
				l.submit(run, row.mem, r)
			}
			for range 100 {
				submit("ada")
			}
			for range 20 {
				submit("bob")
			}
			l.until(noon.Add(24*time.Hour), func(t model.Task) { submit(t.User) })
			for id := range l.ends { // the tasks still running
				t, _ := l.s.Task(id)
				l.had[t.User] += l.now.Sub(l.begun[id]) * time.Duration(t.GPUs)
			}
			ada, bob := l.had["ada"].Hours(), l.had["bob"].Hours()
			if all := ada + bob; math.Abs(ada-bob) > 0.05*all/2 || all < 0.9*4*24 {
				t.Errorf("GPU-hours: ada %.1f, bob %.1f", ada, bob)
			}
		})
	}
}

// TestManyTasks checks that a single task of another user waits for no more than one task
// of the user who has submitted 30,000.
func TestManyTasks(t *testing.T) {
	if testing.Short() {
		t.Skip("30,000 tasks")
	}
	const long = time.Hour
	l := newDay(shared(), 4)
	for i := range 30_000 {
		l.submit(long-time.Duration(i%7)*time.Minute, units.Bytes(4+i%9)*units.GiB, model.Request{User: "ada", Kind: fmt.Sprint("ada", i%50)})
	}
	for _, row := range []struct {
		name string
		mem  units.Bytes
		r    model.Request
	}{
		{"as one of hers", 6 * units.GiB, model.Request{User: "bob"}},
		{"large", 38 * units.GiB, model.Request{User: "cem"}},
		{"alone on two GPUs", 30 * units.GiB, model.Request{User: "dan", GPUs: 2, Exclusive: true}},
	} {
		l.until(l.now.Add(90*time.Minute), func(model.Task) {})
		came := l.now
		id := l.submit(10*time.Minute, row.mem, row.r)
		l.until(came.Add(3*long), func(model.Task) {})
		if began, ok := l.begun[id]; !ok || began.Sub(came) > long {
			w, _ := l.s.Why(id)
			t.Errorf("%s: began %v after %s, %+v", row.name, ok, began.Sub(came), w.Binding)
		}
	}
}

// TestOneUserSeesNoTurns checks that fair-sjf decides like sjf while only one user has tasks.
func TestOneUserSeesNoTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := DefaultOptions()
		o.LookAhead = rapid.SampledFrom([]int{1, 3, 64}).Draw(t, "look-ahead")
		o.Ageing = rapid.SampledFrom([]time.Duration{0, time.Hour, 8 * time.Hour}).Draw(t, "ageing")
		both := []*day{newDay(o, 2), newDay(shared(), 2)}
		other := both[1].s.Options()
		other.LookAhead, other.Ageing = o.LookAhead, o.Ageing
		both[1].s.Configure(other, both[1].s.IdleOnly())
		for range rapid.IntRange(1, 20).Draw(t, "tasks") {
			run := time.Duration(rapid.IntRange(1, 300).Draw(t, "minutes")) * time.Minute
			mem := units.Bytes(rapid.IntRange(1, 40).Draw(t, "GiB")) * units.GiB
			r := model.Request{User: "ada", Kind: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "kind"), GPUs: rapid.IntRange(1, 2).Draw(t, "GPUs")}
			pause := time.Duration(rapid.IntRange(0, 60).Draw(t, "pause")) * time.Minute
			for _, l := range both {
				l.submit(run, mem, r)
				l.until(l.now.Add(pause), func(model.Task) {})
			}
		}
		for _, l := range both {
			l.until(l.now.Add(1000*time.Hour), func(model.Task) {})
		}
		for id := model.TaskID(1); id <= both[0].last; id++ {
			if a, b := both[0].begun[id], both[1].begun[id]; a != b {
				t.Fatalf("task %d began at %v and at %v", id, a, b)
			}
		}
	})
}

// TestAccountsTakeTurns checks that accounts with a weight share the server in proportion to
// it, and that their users share the account's part. Other users get their shares individually.
func TestAccountsTakeTurns(t *testing.T) {
	for _, row := range []struct {
		accounts []model.Weight
		want     map[string]float64 // of all GPU time
	}{
		{nil, map[string]float64{"ada": 0.25, "bob": 0.25, "cem": 0.25, "dan": 0.25}},
		{[]model.Weight{{User: model.EveryAccount, Weight: 1}}, map[string]float64{"ada": 1. / 6, "bob": 1. / 6, "cem": 1. / 6, "dan": 0.5}},
		{[]model.Weight{{User: "lab", Weight: 3}, {User: "ops", Weight: 1}}, map[string]float64{"ada": 0.25, "bob": 0.25, "cem": 0.25, "dan": 0.25}},
		{[]model.Weight{{User: "ops", Weight: 3}}, map[string]float64{"ada": 1. / 6, "bob": 1. / 6, "cem": 1. / 6, "dan": 0.5}},
	} {
		opt := plain()
		opt.Order, opt.FairAccounts = model.OrderFair, row.accounts
		l := newDay(opt, 2)
		noon := l.now
		submit := func(user string) {
			account := "lab"
			if user == "dan" {
				account = "ops"
			}
			l.submit(10*time.Minute, 30*units.GiB, model.Request{User: user, Account: account})
		}
		for _, user := range slices.Repeat([]string{"ada", "bob", "cem", "dan"}, 20) {
			submit(user)
		}
		l.until(noon.Add(48*time.Hour), func(t model.Task) { submit(t.User) })
		all := l.had["ada"] + l.had["bob"] + l.had["cem"] + l.had["dan"]
		for user, want := range row.want {
			if got := l.had[user].Hours() / all.Hours(); math.Abs(got-want) > 0.05*want {
				t.Errorf("%v: %s has %.3f of the GPU time, not %.3f", row.accounts, user, got, want)
			}
		}
	}
}

// TestQuotasOfSome checks that a user's own limits replace the limits of all users, and
// an account's limits apply in addition.
func TestQuotasOfSome(t *testing.T) {
	opt := plain()
	opt.QuotaTasks = 1
	opt.Quotas = []model.Quota{{Name: "ada", Tasks: model.NoQuota, GPUs: 3}, {Name: "bob", Tasks: 2}, {Name: "lab", Account: true, Tasks: 4}}
	w := newWorld(t, opt, 8)
	count := map[string]int{}
	for _, user := range slices.Repeat([]string{"bob", "ada", "cem", "dan"}, 4) {
		account := "lab"
		if user == "dan" {
			account = "ops"
		}
		id := w.submit(30*units.GiB, func(r *model.Request) { r.User, r.Account = user, account })
		if w.task(id).Phase == model.Launching {
			count[user]++
		}
	}
	if got := fmt.Sprint(count); got != "map[ada:1 bob:2 cem:1 dan:1]" { // the account has four
		t.Error(got)
	}
	for id, want := range map[model.TaskID]model.Reason{
		6:  {Code: model.ReasonQuotaTasks, Name: "@lab", Count: 4, Limit: 4},
		8:  {Code: model.ReasonQuotaTasks, Name: "dan", Count: 1, Limit: 1},
		9:  {Code: model.ReasonQuotaTasks, Name: "bob", Count: 2, Limit: 2},
		10: {Code: model.ReasonQuotaTasks, Name: "@lab", Count: 4, Limit: 4},
	} {
		if why, _ := w.s.Why(id); why.Binding != want {
			t.Errorf("task %d: %+v, want %+v", id, why.Binding, want)
		}
	}
	err, _ := w.s.Check(model.Request{User: "ada", Account: "ops", GPUs: 4}, model.Estimate{Memory: units.GiB}).(*model.ImpossibleError)
	if err == nil || err.Reason.Code != model.ReasonNeverGPUs || w.s.Check(model.Request{User: "dan", GPUs: 4}, model.Estimate{Memory: units.GiB}) != nil {
		t.Errorf("four GPUs: %+v", err)
	}
	if a := w.s.GroupAccount("lab"); a.Tasks != 4 || a.Quota.Tasks != 4 || a.Memory != 120*units.GiB {
		t.Errorf("%+v", a)
	}
}
