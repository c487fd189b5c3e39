package place

import (
	"math"
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/fairshare"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/policy"
	"carma/mapper/predict"
	"carma/mapper/queue"
	"carma/mapper/reserve"
)

// begin returns a placer over idle GPUs of the given memory in GiB, on one machine, and
// the queue.
func begin(t *testing.T, name string, capacities ...units.Bytes) (*Placer, *queue.Queue) {
	t.Helper()
	p, err := policy.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	opt := model.Options{Policy: name, LookAhead: 64, Ageing: time.Hour}
	l := ledger.New(opt, p.IdleOnly)
	var all []*model.GPU
	for i, c := range capacities {
		all = append(all, &model.GPU{GPUInfo: model.GPUInfo{ID: model.GPUID('a' + rune(i)), Node: "n", Index: i, Capacity: c * units.GiB}})
	}
	if err := l.Restore(ledger.Snapshot{Now: units.Instant(time.Hour), Options: opt, GPUs: all}); err != nil {
		t.Fatal(err)
	}
	l.Begin(units.Instant(time.Hour))
	us, pr := fairshare.New(l), predict.New(l)
	q := queue.New(l, us, pr)
	pl := New(l, pr, q, reserve.New(l, pr, q), p)
	pl.DropCache()
	return pl, q
}

// wait adds a waiting task that needs some GiB on each of its GPUs.
func wait(q *queue.Queue, id model.TaskID, gpus int, need units.Bytes) *model.Task {
	t := &model.Task{Request: model.Request{ID: id, GPUs: gpus}, Phase: model.Queued, NextGrant: need * units.GiB}
	q.AddTask(t)
	q.Add(t)
	return t
}

// launch places a task in a cycle, and returns the indices of its GPUs.
func launch(pl *Placer, c *Cycle, t *model.Task) (at []int) {
	gpus := pl.Place(c, t)
	if gpus == nil {
		pl.MarkBlocked(c, t)
		return nil
	}
	var grants []model.Grant
	for _, g := range gpus {
		at = append(at, g.Index)
		grants = append(grants, model.Grant{GPU: g.ID, Memory: t.NextGrant})
	}
	t.Phase = model.Launching
	t.Attempts = append(t.Attempts, model.Attempt{N: 1, Grants: grants})
	pl.AddResident(t, gpus, grants, false)
	pl.MarkLaunched(gpus)
	pl.UpdateFree(c)
	return at
}

// TestCycle checks that tasks are placed while there is room, that the first task that
// does not fit is the head of the cycle, and that the cached state of the GPUs stays right.
func TestCycle(t *testing.T) {
	pl, q := begin(t, "first-fit", 40, 20)
	c := pl.BeginCycle(reserve.Head{})
	for i, row := range []struct {
		gpus int
		need units.Bytes
		want []int
	}{{1, 30, []int{0}}, {1, 15, []int{1}}, {2, 8, nil}, {1, 9, []int{0}}, {1, 6, nil}, {1, 4, []int{1}}} {
		task := wait(q, model.TaskID(i+1), row.gpus, row.need)
		if got := launch(pl, c, task); !slices.Equal(got, row.want) {
			t.Errorf("task %d is placed on %v, want %v", task.ID, got, row.want)
		}
	}
	if c.Head() == nil || c.Head().ID != 3 || len(c.Blocked()) != 2 || c.Favoured() != nil {
		t.Errorf("head %+v, %d blocked, favoured %+v", c.Head(), len(c.Blocked()), c.Favoured())
	}
	pl.BeginCycle(reserve.Head{})
	if err := pl.AuditGPUs(); err != nil {
		t.Error(err)
	}
}

// TestRingPosition checks the position of round-robin over a snapshot, a clone, and a change
// of the GPUs.
func TestRingPosition(t *testing.T) {
	pl, q := begin(t, "round-robin", 40, 40, 40)
	c := pl.BeginCycle(reserve.Head{})
	if at := launch(pl, c, wait(q, 1, 1, 1)); !slices.Equal(at, []int{0}) {
		t.Fatalf("the first task is on %v", at)
	}
	saved := pl.Save()
	if at := launch(pl, c, wait(q, 2, 1, 1)); !slices.Equal(at, []int{1}) {
		t.Fatalf("the second task is on %v", at)
	}
	pl.Restore(saved)
	if got := pl.Clone(pl.Ledger, pl.predictor, q, pl.reserve).ring; got != 1 {
		t.Errorf("restored, the ring is at %d, want 1", got)
	}
	next := pl.NextInRing()
	pl.RemoveGPU(pl.GPU("a"))
	if pl.InventoryChanged(next); pl.ring != 0 || pl.NextInRing() != next {
		t.Errorf("without the first GPU the ring is at %d", pl.ring)
	}
}

// TestRejectionsAreKept checks that a GPU that has rejected a task is not asked again until
// it changes.
func TestRejectionsAreKept(t *testing.T) {
	pl, q := begin(t, "magm", 40, 40)
	busy := wait(q, 1, 2, 30)
	launch(pl, pl.BeginCycle(reserve.Head{}), busy)
	q.Remove(busy)
	task := wait(q, 2, 1, 9) // the summary of free memory has 10 GiB
	task.Pinned = []model.GPUID{"z"}
	task.GPUs = 1
	cycle := func() int {
		before := pl.Asked()
		if c := pl.BeginCycle(reserve.Head{}); pl.Place(c, task) != nil {
			t.Fatal("it may use no GPU, and is placed")
		}
		return pl.Asked() - before
	}
	cycle() // the launch has changed both GPUs
	if n := cycle(); n != 0 {
		t.Errorf("nothing has changed, and GPUs are asked %d times", n)
	}
	g := pl.GPU("a")
	g.Residents[0].Grant -= units.GiB
	g.Settle()
	if n := cycle(); n != 1 {
		t.Errorf("one GPU has changed, and GPUs are asked %d times", n)
	}
	if pl.Retry(task); cycle() != 2 {
		t.Error("the task's request has changed, and not every GPU is asked")
	}
}

// TestScoringAllocatesNothing checks that a score allocates no memory, because a cycle
// computes some hundred.
func TestScoringAllocatesNothing(t *testing.T) {
	pl, _ := begin(t, "carma", 40)
	g := pl.GPUList()[0]
	beside := func(c predict.Class, left float64) predict.TaskForecast {
		d := pl.predictor.Demand(predict.TypicalLoads[c], nil)
		return predict.TaskForecast{Demand: d, WorstDemand: d, Left: left, Elsewhere: 1}
	}
	there, heavy := []predict.TaskForecast{beside(predict.MediumTask, 600), beside(predict.LightTask, 900)}, beside(predict.HeavyTask, 300)
	n := &candidate{candidateKey: candidateKey{left: heavy.Left}, demand: heavy.Demand, worst: heavy.WorstDemand}
	var a scoreResult
	if n := testing.AllocsPerRun(100, func() { a = pl.scorer.beside(g, there, n, false) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if a.finish < 300 || math.IsInf(a.added, 0) || a.added <= 0 {
		t.Errorf("a task of 300 s alone ends after %v s and adds %v s", a.finish, a.added)
	}
}

// TestFreeSummary checks the most free memory of the GPUs, and which tasks it excludes.
func TestFreeSummary(t *testing.T) {
	var v freeSummary
	for i := range units.Bytes(40) {
		v.add(ledger.OpenState{Open: true, Idle: i%2 == 0, FreeMemory: (i * 7 % 40) * units.GiB})
	}
	if v.open != 40 || v.idle != 20 || v.free[0] != 39*units.GiB || v.free[15] != 24*units.GiB || !slices.IsSortedFunc(v.free[:], func(a, b units.Bytes) int { return int(b - a) }) {
		t.Errorf("the summary is %+v", v)
	}
	for _, row := range []struct {
		gpus  int
		need  units.Bytes
		alone bool
		want  bool
	}{{1, 39, false, true}, {1, 40, false, false}, {16, 24, false, true}, {16, 25, false, false}, {20, 1, true, true}, {21, 1, true, false}, {41, 1, false, false}} {
		task := &model.Task{Request: model.Request{GPUs: row.gpus}, NextGrant: row.need * units.GiB}
		if got := v.possible(task, row.alone); got != row.want {
			t.Errorf("%+v: possible %v", row, got)
		}
	}
}
