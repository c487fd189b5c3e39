package mapper

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/fairshare"
	"carma/mapper/model"
)

func fair() model.Options {
	opt := plain()
	opt.Order = model.OrderFair
	return opt
}

func by(user string) func(*model.Request) { return func(r *model.Request) { r.User = user } }

// starts returns the users of the launches, beginning with the launch number from.
func (w *world) starts(from int) string {
	var users []string
	for _, l := range w.launches[from:] {
		users = append(users, w.task(l.Task).User)
	}
	return strings.Join(users, " ")
}

// busy makes a task of another user hold all GPUs, until free is called.
func (w *world) busy(n int) (free func()) {
	id := w.submit(units.GiB, func(r *model.Request) { r.User, r.GPUs, r.Exclusive = "root", n, true })
	return func() { w.exit(id, model.ExitOK) }
}

// TestFairOrder checks who starts first, by past use and current tasks.
func TestFairOrder(t *testing.T) {
	for _, row := range []struct {
		name    string
		used    map[string]time.Duration // earlier use, in time of a whole GPU
		ago     time.Duration            // time since that use ended
		weights []model.Weight
		wait    []string // users of the waiting tasks, in order of submission
		want    string
	}{
		{name: "nobody has had anything: as submitted, in turns", wait: []string{"bob", "bob", "ada", "ada"}, want: "bob ada bob ada"},
		{name: "who has had less", used: map[string]time.Duration{"bob": time.Hour}, wait: []string{"bob", "ada"}, want: "ada bob"},
		{name: "one user's tasks as submitted", used: map[string]time.Duration{"bob": 3 * time.Hour}, wait: []string{"bob", "bob", "ada", "ada", "ada"}, want: "ada ada ada bob bob"},
		{name: "in turns once they have had the same", used: map[string]time.Duration{"bob": 15 * time.Minute},
			wait: []string{"bob", "bob", "ada", "ada", "ada", "ada"}, want: "ada ada bob ada bob ada"},
		{name: "a weight", used: map[string]time.Duration{"ada": 2 * time.Hour, "bob": time.Hour},
			weights: []model.Weight{{User: "ada", Weight: 3}}, wait: []string{"bob", "ada"}, want: "ada bob"},
		{name: "a weight below others", used: map[string]time.Duration{"ada": time.Hour, "bob": 90 * time.Minute},
			weights: []model.Weight{{User: "ada", Weight: 0.5}}, wait: []string{"ada", "bob"}, want: "bob ada"},
		{name: "use of long ago is forgotten", used: map[string]time.Duration{"bob": time.Hour}, ago: 24 * 20 * time.Hour, wait: []string{"bob", "ada"}, want: "bob ada"},
		{name: "use of lately is not", used: map[string]time.Duration{"bob": time.Hour}, ago: 48 * time.Hour, wait: []string{"bob", "ada"}, want: "ada bob"},
	} {
		t.Run(row.name, func(t *testing.T) {
			opt := fair()
			opt.FairWeights = row.weights
			w := newWorld(t, opt, 6)
			for _, user := range []string{"ada", "bob"} {
				if d := row.used[user]; d > 0 {
					id := w.submit(units.GiB, func(r *model.Request) { r.User, r.Exclusive = user, true })
					w.wait(d)
					w.exit(id, model.ExitOK)
				}
			}
			w.wait(row.ago)
			free := w.busy(6)
			for _, user := range row.wait {
				w.submit(units.GiB, func(r *model.Request) { r.User, r.Exclusive = user, true })
			}
			first := len(w.launches)
			free()
			if got := w.starts(first); got != row.want {
				t.Errorf("%s, want %s", got, row.want)
			}
		})
	}
}

// TestFairPriority checks that a priority class goes before lower ones regardless of
// users, and that recovering tasks go before all.
func TestFairPriority(t *testing.T) {
	w := newWorld(t, fair(), 1)
	bob := w.submit(units.GiB, func(r *model.Request) { r.User, r.Exclusive = "bob", true })
	w.wait(time.Hour)
	w.submit(units.GiB, func(r *model.Request) { r.User, r.Exclusive = "ada", true })
	urgent := w.submit(units.GiB, func(r *model.Request) { r.User, r.Exclusive, r.Priority = "bob", true, model.High })
	w.exit(bob, model.ExitEvicted)
	w.wantOn(bob, 0)
	w.exit(bob, model.ExitOK)
	w.wantOn(urgent, 0)
}

// TestCharge checks what users are charged for.
func TestCharge(t *testing.T) {
	const hour = 3600
	for _, row := range []struct {
		name string
		do   func(w *world)
		want map[string]float64 // in GPU-seconds; exact, because decay is off
	}{
		{"a whole GPU", func(w *world) { w.submit(units.GiB, func(r *model.Request) { r.User, r.Exclusive = "ada", true }) }, map[string]float64{"ada": hour}},
		{"two whole GPUs", func(w *world) {
			w.submit(units.GiB, func(r *model.Request) { r.User, r.Exclusive, r.GPUs = "ada", true, 2 })
		}, map[string]float64{"ada": 2 * hour}},
		{"the part that is booked", func(w *world) { w.submit(10*units.GiB, by("ada")); w.submit(20*units.GiB, by("bob")) }, map[string]float64{"ada": hour / 4, "bob": hour / 2}},
		{"a neighbour changes nothing", func(w *world) {
			w.submit(10*units.GiB, by("ada"))
			w.submit(10*units.GiB, by("ada"))
			w.submit(30*units.GiB, by("bob"))
		}, map[string]float64{"ada": hour / 2, "bob": hour * 3 / 4}},
		{"a little at least", func(w *world) { w.submit(1, by("ada")) }, map[string]float64{"ada": hour / 16}},
		{"from the launch on, not from the start", func(w *world) { w.started(w.submit(20*units.GiB, by("ada"))) }, map[string]float64{"ada": hour / 2}},
		{"waiting costs nothing", func(w *world) { w.busy(2); w.submit(10*units.GiB, by("ada")) }, map[string]float64{"ada": 0, "root": 2 * hour}},
	} {
		t.Run(row.name, func(t *testing.T) {
			opt := fair()
			opt.FairHalfLife = 1e6 * time.Hour
			w := newWorld(t, opt, 2)
			row.do(w)
			w.wait(time.Hour)
			w.look()
			for name, want := range row.want {
				if u := w.s.users.Of(model.UserAccount{User: name}); u == nil || math.Abs(u.Use-want) > 0.01 {
					t.Errorf("%s has used %+v, want %v", name, u, want)
				}
			}
		})
	}
}

// TestDecay checks that use is halved after the half-life, with or without events in between,
// and that users without recent use are forgotten.
func TestDecay(t *testing.T) {
	for _, looks := range []int{1, 24} {
		w := newWorld(t, fair(), 1)
		id := w.submit(units.GiB, func(r *model.Request) { r.User, r.Exclusive = "ada", true })
		w.wait(time.Hour)
		w.exit(id, model.ExitOK)
		had := w.s.users.Of(model.UserAccount{User: "ada"}).Use
		for range looks {
			w.wait(24 * time.Hour / time.Duration(looks))
			w.look()
		}
		if got := w.s.users.Of(model.UserAccount{User: "ada"}).Use; math.Abs(got-had/2) > 1e-6*had {
			t.Errorf("%v of %v GPU-seconds are left after a half-life and %d looks", got, had, looks)
		}
		w.wait(24 * time.Hour * 12)
		w.look()
		if all := w.s.Accounts(); len(all) != 0 {
			t.Errorf("after twelve more: %+v", all)
		}
	}
}

// TestFairWhy checks the shown position of a task, and the shown reason why other users' tasks
// are before it.
func TestFairWhy(t *testing.T) {
	opt := fair()
	opt.LookAhead = 1
	w := newWorld(t, opt, 1)
	w.submit(20*units.GiB, func(r *model.Request) { r.User, r.Exclusive = "bob", true })
	w.wait(time.Hour)
	mine := w.submit(10*units.GiB, by("bob"))
	w.submit(30*units.GiB, by("ada"))
	w.submit(30*units.GiB, by("ada"))
	w.look()
	why, _ := w.s.Why(mine)
	if want := "0 of 1: GPU 0 alone task=1; 2 of others first, ada 0, bob 3549"; sayWhy(why) != want || why.Rule != model.RuleFairShare || why.Position != 3 {
		t.Errorf("%s\nwant %s", sayWhy(why), want)
	}
	for i, id := range []model.TaskID{3, 4, 2} {
		if got := w.s.Position(id); got != i+1 {
			t.Errorf("task %d is at place %d, want %d", id, got, i+1)
		}
	}
	if why, _ := w.s.Why(3); why.Rule != "" || sayWhy(why) != "0 of 1: GPU 0 alone task=1" {
		t.Errorf("%+v", why)
	}
}

// TestFairWakes checks that a timer checks the order again when it changes without an event.
func TestFairWakes(t *testing.T) {
	opt := fair()
	opt.LookAhead, opt.Ageing = 1, 1000*time.Hour
	w := newWorld(t, opt, 2)
	w.wait(time.Hour)
	old := w.submit(30*units.GiB, func(r *model.Request) { r.User, r.GPUs = "bob", 1 })
	w.wait(time.Hour)
	w.exit(old, model.ExitOK) // bob has had 0.75 GPU-hours
	w.submit(30*units.GiB, by("ada"))
	w.submit(30*units.GiB, by("eve"))
	w.submit(30*units.GiB, by("ada")) // does not fit, and is the only task within the look-ahead
	small := w.submit(units.GiB, by("bob"))
	w.wantOn(small)
	w.wait(3 * time.Hour)
	if w.on(small) == nil {
		t.Error("bob has had less by now, and his task still waits")
	}
}

// TestFairSwitch checks that no task is lost when the option changes while tasks wait,
// and that earlier use counts.
func TestFairSwitch(t *testing.T) {
	w := newWorld(t, plain(), 1)
	id := w.submit(units.GiB, func(r *model.Request) { r.User, r.Exclusive = "bob", true })
	w.wait(time.Hour)
	for _, user := range []string{"bob", "ada", "bob", "ada"} {
		w.submit(units.GiB, by(user))
	}
	order := func() (ids []model.TaskID) {
		for _, task := range w.s.Tasks()[1:] {
			ids = append(ids, task.ID)
		}
		slices.SortFunc(ids, func(a, b model.TaskID) int { return w.s.Position(a) - w.s.Position(b) })
		return ids
	}
	for range 2 {
		w.step(model.Configured{At: w.now, Options: fair()})
		if got := order(); !slices.Equal(got, []model.TaskID{3, 5, 2, 4}) {
			t.Errorf("by fair share %v", got)
		}
		w.step(model.Configured{At: w.now, Options: plain()})
		if got := order(); !slices.Equal(got, []model.TaskID{2, 3, 4, 5}) {
			t.Errorf("by number %v", got)
		}
	}
	w.exit(id, model.ExitOK)
}

// TestOldSnapshot checks that a snapshot without users still loads.
func TestOldSnapshot(t *testing.T) {
	w := newWorld(t, plain(), 1)
	w.submit(20*units.GiB, by("ada"))
	w.submit(30*units.GiB, by("bob"))
	b, err := w.s.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	from := strings.Index(text, `,"users":`)
	text = text[:from] + "}"
	text = strings.ReplaceAll(text, `"share":500000,`, "")
	var s State
	if from < 0 || strings.Contains(text, "share") || s.UnmarshalJSON([]byte(text)) != nil {
		t.Fatalf("it does not load: %s", text)
	}
	if u := s.users.Of(model.UserAccount{User: "ada"}); u.Rate() != model.WholeGPU/2 || u.Tasks() != 1 || s.users.Of(model.UserAccount{User: "bob"}).Waiting() != 1 {
		t.Errorf("%+v %+v", u, s.users.Of(model.UserAccount{User: "bob"}))
	}
}

// TestAccount checks the accounting of a user, and the order of users.
func TestAccount(t *testing.T) {
	for _, row := range []struct {
		opt   model.Options
		ahead int
	}{{plain(), 0}, {fair(), 1}} {
		w := newWorld(t, row.opt, 1)
		w.submit(20*units.GiB, by("ada"))
		w.submit(30*units.GiB, by("bob"))
		w.submit(30*units.GiB, by("ada"))
		a, b := w.s.Account("ada"), w.s.Account("bob")
		if a.Tasks != 1 || a.GPUs != 1 || a.Memory != 20*units.GiB || b.Tasks != 0 || a.Ahead != row.ahead || b.Ahead != 0 {
			t.Errorf("order %q: %+v, %+v", row.opt.Order, a, b)
		}
		if got := w.s.Account("eve"); got != (fairshare.Account{Name: "eve", Weight: 1, Quota: model.Quota{Name: "eve"}}) {
			t.Errorf("of nobody: %+v", got)
		}
	}
}

// BenchmarkFairPass measures a scheduling cycle over 100,000 waiting tasks of 200 users,
// in which a task ends and others start.
func BenchmarkFairPass(b *testing.B) {
	opt := fair()
	s, now := New(opt), units.Instant(time.Hour)
	var gpus []model.GPUInfo
	for i := range 256 {
		gpus = append(gpus, model.GPUInfo{ID: model.GPUID(fmt.Sprint(i)), Node: fmt.Sprint(i / 8), Index: i % 8, Capacity: 80 * units.GiB})
	}
	s.Step(model.GPUsFound{At: now, GPUs: gpus})
	running := []model.Launch{}
	step := func(ev model.Event) {
		for _, d := range s.Step(ev) {
			if l, ok := d.(model.Launch); ok {
				running = append(running, l)
			}
		}
	}
	last := model.TaskID(0)
	submit := func() {
		last++
		now += units.Instant(time.Second)
		step(model.TaskSubmitted{At: now, Request: model.Request{ID: last, User: fmt.Sprint(last * 7919 % 200), GPUs: 1}})
		step(model.Estimated{At: now, Task: last, Estimate: model.Estimate{Memory: units.Bytes(14+last%9) * units.GiB}})
	}
	for s.QueueLen() < 100_000 {
		submit()
	}
	for b.Loop() {
		now += units.Instant(time.Second)
		done := running[0]
		running = running[1:]
		step(model.Exited{At: now, Task: done.Task, Attempt: done.Attempt, Class: model.ExitOK})
		if s.QueueLen() < 100_000 {
			b.StopTimer()
			submit()
			b.StartTimer()
		}
	}
	if err := s.sound(); err != nil {
		b.Fatal(err)
	}
}
