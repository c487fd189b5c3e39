package preempt

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/fairshare"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/place"
	"carma/mapper/policy"
	"carma/mapper/predict"
	"carma/mapper/queue"
	"carma/mapper/reserve"
)

const hour = units.Instant(time.Hour)

// begin returns a preempter over n GPUs of 40 GiB that can suspend, at the first hour.
func begin(t *testing.T, n int, change func(*model.Options)) *Preempter {
	t.Helper()
	opt := model.Options{Policy: "first-fit", LookAhead: 64, Ageing: time.Hour, Watchdog: model.WatchdogRelaunch}
	if change != nil {
		change(&opt)
	}
	var all []*model.GPU
	for i := range n {
		all = append(all, &model.GPU{GPUInfo: model.GPUInfo{ID: model.GPUID('a' + rune(i)), Node: "n", Index: i, Capacity: 40 * units.GiB, Suspend: model.SuspendMove}})
	}
	l := ledger.New(opt, false)
	if err := l.Restore(ledger.Snapshot{Now: hour, Options: opt, GPUs: all}); err != nil {
		t.Fatal(err)
	}
	l.Begin(hour)
	first, err := policy.Named("first-fit")
	if err != nil {
		t.Fatal(err)
	}
	us, pr := fairshare.New(l), predict.New(l)
	q := queue.New(l, us, pr)
	rs := reserve.New(l, pr, q)
	pl := place.New(l, pr, q, rs, first)
	pl.DropCache()
	return New(l, pr, q, rs, pl)
}

// run adds a task that has run on a GPU for some time with a grant of some GiB.
func run(pre *Preempter, id model.TaskID, gpu model.GPUID, grant units.Bytes, since time.Duration) *model.Task {
	started := hour.Add(-since)
	t := &model.Task{Request: model.Request{ID: id, GPUs: 1, Kind: fmt.Sprint(id), Priority: model.Normal}, Phase: model.Running, NextGrant: grant * units.GiB}
	t.Attempts = []model.Attempt{{N: 1, Launched: started, Started: started, Grants: []model.Grant{{GPU: gpu, Memory: grant * units.GiB}}}}
	pre.UseID(id)
	pre.AddTask(t)
	pre.GPU(gpu).Add(model.Resident{Task: id, Grant: grant * units.GiB}, 0)
	return t
}

// wait adds a waiting task that needs some GiB.
func wait(pre *Preempter, id model.TaskID, priority model.Priority, need units.Bytes) *model.Task {
	t := &model.Task{Request: model.Request{ID: id, GPUs: 1, Priority: priority}, Phase: model.Queued, NextGrant: need * units.GiB, QueuedAt: hour}
	pre.UseID(id)
	pre.AddTask(t)
	pre.queue.Add(t)
	return t
}

// decided returns the decisions so far in short, and drops them.
func decided(pre *Preempter) (all []string) {
	for _, d := range pre.Decisions() {
		switch d := d.(type) {
		case model.Suspend:
			all = append(all, fmt.Sprintf("suspend %d: %s", d.Task, d.Reason.Code))
		case model.Stop:
			all = append(all, fmt.Sprintf("stop %d: %s", d.Task, d.Reason.Code))
		case model.Idle:
			all = append(all, fmt.Sprintf("idle %d: %v, ends %v", d.Task, d.Since != 0, d.Ends != 0))
		}
	}
	pre.ClearDecisions()
	return all
}

func want(t *testing.T, pre *Preempter, lines ...string) {
	t.Helper()
	if got := decided(pre); !slices.Equal(got, lines) {
		t.Errorf("decided %q, want %q", got, lines)
	}
}

// TestDisplace checks for each cause and method whether a victim is suspended or stopped,
// and how it is marked for what follows.
func TestDisplace(t *testing.T) {
	all := func(o *model.Options) {
		o.SuspendOveruse, o.SuspendIdle, o.SuspendSlots, o.SuspendMoves, o.SuspendSlowing, o.MakeWay, o.SwapShorter, o.FillHeld = true, true, true, true, true, true, true, true
	}
	for _, code := range []model.ReasonCode{model.ReasonOveruse, model.ReasonIdle, model.ReasonSlotUsed, model.ReasonMoved, model.ReasonSlowing, model.ReasonMadeWay, model.ReasonSwapped, model.ReasonFilled} {
		for _, row := range []struct {
			how     method
			options func(*model.Options)
			never   bool // the driver cannot suspend
			want    string
		}{
			{suspendOrStop, all, false, "suspend"},
			{suspendOrStop, nil, false, "stop"},
			{suspendOrStop, all, true, "stop"},
			{suspendOnly, all, false, "suspend"},
			{suspendOnly, nil, false, ""},
			{suspendOnly, all, true, ""},
			{stopOnly, all, false, "stop"},
		} {
			pre := begin(t, 1, row.options)
			if row.never {
				pre.GPU("a").Suspend = model.SuspendNever
			}
			v := run(pre, 1, "a", 10, time.Hour)
			done := pre.displace(displacement{v, model.Reason{Code: code}, row.how})
			var lines []string
			if row.want != "" {
				lines = []string{fmt.Sprintf("%s 1: %s", row.want, code)}
			}
			if want(t, pre, lines...); done != (row.want != "") {
				t.Errorf("%s, %+v: displaced %v", code, row, done)
			}
			flagged := v.TimedOut || v.SlotUsed || v.Overuse || v.Moving
			marks := code == model.ReasonOveruse || code == model.ReasonIdle || code == model.ReasonSlotUsed || code == model.ReasonSlowing
			if flagged != (row.want == "stop" && marks) {
				t.Errorf("%s, %s: flags %v", code, row.want, flagged)
			}
		}
	}
}

// TestPreempt checks who is suspended for a task of high priority: not a task that has just
// begun, the fewest and smallest that make room, and that its GPU is nominated until the
// task is placed.
func TestPreempt(t *testing.T) {
	pre := begin(t, 2, func(o *model.Options) { o.MakeWay = true })
	run(pre, 1, "a", 30, time.Hour)
	run(pre, 2, "a", 5, time.Hour)
	run(pre, 3, "b", 21, PreemptibleAfter/2) // would cost less
	task := wait(pre, 4, model.High, 20)
	c := pre.placer.BeginCycle(reserve.Head{})
	if pre.placer.Place(c, task) != nil {
		t.Fatal("it fits: this tests nothing")
	}
	pre.placer.MarkBlocked(c, task)
	pre.Preempt(c)
	want(t, pre, "suspend 1: "+string(model.ReasonMadeWay))
	if a, b := pre.GPU("a").NominatedFor, pre.GPU("b").NominatedFor; a != 4 || b != 0 {
		t.Errorf("nominated for %d and %d", a, b)
	}
	pre.Preempt(c) // not again at once
	want(t, pre)
	pre.BeginCycle()
	pre.ClearNominations(task)
	if pre.GPU("a").NominatedFor != 0 || !pre.Released() {
		t.Errorf("nominated for %d, released %v", pre.GPU("a").NominatedFor, pre.Released())
	}
	other := wait(pre, 5, model.Normal, 20) // none has a lower priority
	c = pre.placer.BeginCycle(reserve.Head{})
	pre.placer.MarkBlocked(c, other)
	pre.Preempt(c)
	want(t, pre)
}

// TestExpireNominations checks that a nomination ends when no victim leaves for its task.
func TestExpireNominations(t *testing.T) {
	pre := begin(t, 1, func(o *model.Options) { o.MakeWay = true })
	v, task := run(pre, 1, "a", 30, time.Hour), wait(pre, 2, model.High, 20)
	pre.displace(displacement{v, model.Reason{Code: model.ReasonMadeWay, Task: task.ID}, suspendOnly})
	pre.GPU("a").NominatedFor = task.ID
	always := func(*model.Task) bool { return true }
	if pre.ExpireNominations(always) {
		t.Error("the victim is being suspended, and the nomination has ended")
	}
	v.Phase = model.Running
	if !pre.ExpireNominations(always) || pre.GPU("a").NominatedFor != 0 {
		t.Error("nobody leaves, and the nomination goes on")
	}
}

// TestRotate checks that tasks whose slot is over stop for waiting ones, and only as many as
// these need.
func TestRotate(t *testing.T) {
	pre := begin(t, 2, func(o *model.Options) { o.Slot = 30 * time.Minute })
	run(pre, 1, "a", 35, time.Hour)
	run(pre, 2, "b", 35, 10*time.Minute)
	first, second := wait(pre, 3, model.Normal, 20), wait(pre, 4, model.Normal, 15)
	pre.Rotate([]*model.Task{first, second})
	want(t, pre, "stop 1: "+string(model.ReasonSlotUsed))
	pre.Rotate([]*model.Task{first, second}) // the memory of the first already counts as free
	want(t, pre)

	pre = begin(t, 1, func(o *model.Options) { o.Slot = 30 * time.Minute })
	run(pre, 1, "a", 35, time.Hour).Priority = model.High // it would go before the other again
	pre.Rotate([]*model.Task{wait(pre, 2, model.Normal, 20)})
	want(t, pre)
}

// TestEnforceGrants checks that the task that exceeds its grant most is stopped, only where
// memory is short, only after a while, and only one on a GPU.
func TestEnforceGrants(t *testing.T) {
	pre := begin(t, 2, nil)
	for _, g := range pre.GPUList() {
		for i, used := range []units.Bytes{19, 14, 12} {
			id := model.TaskID(10*g.Index + i + 1)
			run(pre, id, g.ID, 11, time.Hour)
			r := g.Resident(id)
			r.Used = used * units.GiB
			if r.Used > r.Grant {
				r.OverSince = hour
			}
		}
	}
	for _, r := range []int{0, 1, 2} { // on b there is room
		b := pre.GPU("b")
		b.Residents[r].Used = b.Residents[r].Grant
	}
	for _, g := range pre.GPUList() {
		g.Settle()
	}
	pre.EnforceGrants()
	want(t, pre)
	pre.Begin(hour.Add(OverusePatience))
	pre.EnforceGrants()
	want(t, pre, "stop 1: "+string(model.ReasonOveruse))
	pre.EnforceGrants()
	want(t, pre)
}

// TestIdle checks report, warning and stop of an idle task, and that activity ends all three.
func TestIdle(t *testing.T) {
	pre := begin(t, 1, func(o *model.Options) { o.IdleReport, o.IdleYield = 30*time.Minute, time.Hour })
	v, g := run(pre, 1, "a", 10, time.Minute), pre.GPU("a")
	at := func(after time.Duration, smact float64) {
		pre.Begin(hour.Add(after))
		g.Read, g.SMACT, g.Residents[0].Used, g.Residents[0].Peak = true, smact, units.GiB, units.GiB
		pre.CheckActivity(g)
		pre.HandleIdle(v)
	}
	at(0, 0.5)
	at(time.Minute, 0)
	want(t, pre)
	at(32*time.Minute, 0)
	want(t, pre, "idle 1: true, ends false")
	at(52*time.Minute, 0)
	want(t, pre, "idle 1: true, ends true")
	at(53*time.Minute, 0.5)
	want(t, pre, "idle 1: false, ends false")
	at(54*time.Minute, 0)
	at(104*time.Minute, 0)
	want(t, pre, "idle 1: true, ends true")
	at(115*time.Minute, 0)
	want(t, pre, "stop 1: "+string(model.ReasonIdle))
}

// TestSuspensionsAreCounted checks the time and the list of suspensions of an attempt. The
// list has the latest ones.
func TestSuspensionsAreCounted(t *testing.T) {
	pre := begin(t, 1, nil)
	v := run(pre, 1, "a", 10, time.Hour)
	for range absencesKept + 3 {
		since := pre.Now()
		pre.Begin(since.Add(time.Minute))
		pre.RecordSuspension(v.Last(), &model.Suspension{Since: since, From: v.Last().Grants})
	}
	a := v.Last()
	if a.SuspendedTime != (absencesKept+3)*time.Minute || len(a.Absences) != absencesKept {
		t.Errorf("suspended for %v, %d times listed", a.SuspendedTime, len(a.Absences))
	}
	if last := a.Absences[absencesKept-1]; last.To != pre.Now() || !slices.Equal(last.GPUs, []model.GPUID{"a"}) {
		t.Errorf("the last one is %+v", last)
	}
}
