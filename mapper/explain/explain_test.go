package explain

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/breaker"
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

// begin returns an explainer over a machine with two GPUs of 40 GiB, at the first hour.
func begin(t *testing.T, change func(*model.Options)) *Explainer {
	t.Helper()
	opt := model.Options{Policy: "first-fit", LookAhead: 2, Ageing: time.Hour, Interval: time.Minute, LaunchesAtOnce: 3, Slot: time.Hour}
	if change != nil {
		change(&opt)
	}
	first, err := policy.Named(opt.Policy)
	if err != nil {
		t.Fatal(err)
	}
	l := ledger.New(opt, first.IdleOnly)
	var all []*model.GPU
	for i, id := range []model.GPUID{"a", "b"} {
		all = append(all, &model.GPU{GPUInfo: model.GPUInfo{ID: id, Node: "n", Index: i, Capacity: 40 * units.GiB}})
	}
	if err := l.Restore(ledger.Snapshot{Now: hour, Options: opt, GPUs: all}); err != nil {
		t.Fatal(err)
	}
	l.Begin(hour)
	h := l.OpenHost("n")
	h.HostInfo, h.Known = model.HostInfo{Node: "n", Total: 100 * units.GiB, Memory: 100 * units.GiB, Most: 100 * units.GiB, CPUs: 8000}, true
	us, pr := fairshare.New(l), predict.New(l)
	q := queue.New(l, us, pr)
	rs := reserve.New(l, pr, q)
	pl := place.New(l, pr, q, rs, first)
	pl.DropCache()
	return New(l, us, breaker.New(l), q, rs, pl)
}

// wait adds a waiting task that needs some GiB on each of n GPUs.
func wait(ex *Explainer, id model.TaskID, n int, need units.Bytes) *model.Task {
	t := &model.Task{Request: model.Request{ID: id, GPUs: n, Priority: model.Normal}, Phase: model.Queued, NextGrant: need * units.GiB, QueuedAt: hour}
	ex.UseID(id)
	ex.AddTask(t)
	ex.queue.Add(t)
	return t
}

// run adds a task that runs on a GPU with a grant of some GiB.
func run(ex *Explainer, id model.TaskID, gpu model.GPUID, grant units.Bytes) *model.Task {
	t := &model.Task{Request: model.Request{ID: id, GPUs: 1, Priority: model.Normal}, Phase: model.Running}
	t.Attempts = []model.Attempt{{N: 1, Launched: hour, Started: hour, Grants: []model.Grant{{GPU: gpu, Memory: grant * units.GiB}}}}
	ex.UseID(id)
	ex.AddTask(t)
	ex.GPU(gpu).Add(model.Resident{Task: id, Grant: grant * units.GiB}, 0)
	ex.GPU(gpu).Settle()
	return t
}

// TestImpossible checks which option of a request can never be met, and the nearest value.
func TestImpossible(t *testing.T) {
	for _, row := range []struct {
		option string
		code   model.ReasonCode
		r      model.Request
		memory units.Bytes
	}{
		{"", "", model.Request{GPUs: 2}, 40},
		{"gpus", model.ReasonTooManyGPUs, model.Request{GPUs: 3}, 1},
		{"mem", model.ReasonTooMuchMemory, model.Request{GPUs: 1}, 50},
		{"host-mem", model.ReasonTooMuchHost, model.Request{GPUs: 1, HostMem: 200 * units.GiB}, 1},
		{"cpus", model.ReasonTooManyCPUs, model.Request{NoGPU: true, CPUs: 9000}, 0},
		{"slot", model.ReasonSlotTooLong, model.Request{NoGPU: true, Slot: 2 * time.Hour}, 0},
		{"", "", model.Request{NoGPU: true, Slot: time.Minute}, 50},
	} {
		no := begin(t, nil).Impossible(row.r, model.Estimate{Memory: row.memory * units.GiB})
		switch {
		case no == nil && row.option != "":
			t.Errorf("%+v is possible", row.r)
		case no != nil && (no.Option != row.option || no.Reason.Code != row.code):
			t.Errorf("%+v, %d GiB: %+v, want %s: %s", row.r, row.memory, no, row.option, row.code)
		}
	}
	ex := begin(t, nil)
	ex.GPU("a").MIG, ex.GPU("b").MIG = true, true
	if no := ex.Impossible(model.Request{GPUs: 2}, model.Estimate{}); no == nil || no.Reason.Code != model.ReasonOnlyParts || ex.MostGPUs() != 1 {
		t.Errorf("two MIG instances for one task: %+v, most %d", no, ex.MostGPUs())
	}
}

// TestWhy checks which reason decides: what holds all tasks, then what holds this one, then
// the GPUs.
func TestWhy(t *testing.T) {
	paused := Launching{Paused: model.Reason{Code: model.ReasonPaused}, NotBefore: hour + 1, InFlight: 3}
	for _, row := range []struct {
		name string
		now  Launching
		set  func(*Explainer, *model.Task)
		want model.ReasonCode
	}{
		{"nothing holds it", Launching{}, nil, model.ReasonAboutToStart},
		{"paused", paused, nil, model.ReasonPaused},
		{"engine down", paused, func(ex *Explainer, _ *model.Task) { ex.breakers.EngineChanged(false, "no answer") }, model.ReasonEngineDown},
		{"back-off", Launching{NotBefore: hour + 1}, func(_ *Explainer, w *model.Task) { w.NotBefore = hour + 1 }, model.ReasonBackOff},
		{"interval", Launching{NotBefore: hour + 1}, nil, model.ReasonInterval},
		{"launches in flight", Launching{InFlight: 3, Again: hour + 1}, nil, model.ReasonHanding},
		{"scheduled again later", Launching{Again: hour + 1}, nil, model.ReasonLookedAtLater},
		{"GPUs full", Launching{InFlight: 3}, func(ex *Explainer, _ *model.Task) { run(ex, 2, "a", 30); run(ex, 3, "b", 35) }, model.ReasonTurnedDown},
	} {
		ex := begin(t, nil)
		w := wait(ex, 1, 1, 20)
		if row.set != nil {
			row.set(ex, w)
		}
		why, ok := ex.Why(1, row.now)
		if !ok || why.Binding.Code != row.want || why.Position != 1 {
			t.Errorf("%s: %+v, want %s", row.name, why, row.want)
		}
		if full := row.want == model.ReasonTurnedDown; (len(why.Fits) == 0) != full || (why.Nearest != nil) != full {
			t.Errorf("%s: fits %v, nearest %+v", row.name, why.Fits, why.Nearest)
		}
	}
	if _, ok := begin(t, nil).Why(7, Launching{}); ok {
		t.Error("a reason for a task that does not exist")
	}
}

// TestWhyPreempting checks how many tasks are being suspended for a task, and for how long
// one of them has been suspended.
func TestWhyPreempting(t *testing.T) {
	ex := begin(t, func(o *model.Options) { o.MakeWay = true })
	wait(ex, 1, 1, 20)
	for id, g := range map[model.TaskID]model.GPUID{2: "a", 3: "b"} {
		v := run(ex, id, g, 35)
		v.Phase, v.Suspension = model.Suspending, &model.Suspension{Reason: model.Reason{Code: model.ReasonMadeWay, Task: 1}}
	}
	ex.GPU("a").NominatedFor = 1
	if why, _ := ex.Why(1, Launching{}); why.Binding != (model.Reason{Code: model.ReasonWay, Count: 2, Task: 2}) {
		t.Errorf("binding %+v", why.Binding)
	}
	v := ex.TaskByID(2)
	v.Phase, v.Suspension.Since, v.Suspension.Automatic = model.Suspended, hour, true
	v.Suspension.From = v.Last().Grants
	ex.GPU("a").Remove(2)
	ex.queue.Add(v)
	ex.Begin(hour.Add(time.Minute))
	if why, _ := ex.Why(2, Launching{}); why.Away.Code != model.ReasonMadeWay || why.Away.Span != time.Minute {
		t.Errorf("away %+v", why.Away)
	}
}
