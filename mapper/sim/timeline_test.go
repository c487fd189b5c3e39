package sim

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/policy"
)

// crowd returns tasks of several kinds, some of which run out of memory.
func crowd(n int) []Task {
	loads := []Load{vgg128, small, resnet, smaller}
	var tasks []Task
	for i := range n {
		memory := units.Bytes(3+5*(i%4)) * units.GiB
		task := training(time.Duration(i)*50*time.Second, time.Duration(5+i%17)*time.Minute, memory, loads[i%len(loads)])
		task.Name = "task"
		if i%3 == 0 {
			task.Estimate.Memory = 2 * units.GiB
		}
		if i%7 == 0 {
			task.GPUs, task.Memory, task.Loads = 2, append(task.Memory, memory), append(task.Loads, task.Loads[0])
		}
		tasks = append(tasks, task)
	}
	return tasks
}

// TestTimeline checks that the curves agree with the metrics and have nothing impossible.
func TestTimeline(t *testing.T) {
	for _, policy := range policy.Names() {
		tasks := crowd(80)
		r := mustRun(t, Config{Options: options(policy), GPUs: station(3), StartUp: time.Second, Timeline: true}, tasks)
		line, m := r.Timeline, r.Metrics
		if got := line.End.Sub(line.Start); got != m.Makespan {
			t.Errorf("%s: %s long, the makespan is %s", policy, got, m.Makespan)
		}
		var smact, energy, memory float64
		for _, g := range line.GPUs {
			smact += g.SMACT.Integral(line.Start, line.End)
			energy += g.Power.Integral(line.Start, line.End)
			memory += g.Used.Integral(line.Start, line.End)
			checkGPU(t, policy, g, line.Start)
		}
		gpuSeconds := m.Makespan.Seconds() * float64(len(line.GPUs))
		for _, v := range []struct {
			name      string
			got, want float64
		}{
			{"SM seconds", smact, m.MeanSMACT * gpuSeconds}, {"joules", energy, m.EnergyJ},
			{"byte seconds", memory / gpuSeconds, float64(m.MeanMemory)},
		} {
			if math.Abs(v.got/v.want-1) > 1e-9 {
				t.Errorf("%s: %v %s, the metrics say %v", policy, v.got, v.name, v.want)
			}
		}
		if line.Queue.Max() == 0 || line.Queue[len(line.Queue)-1].Value != 0 {
			t.Errorf("%s: at most %v tasks wait, and %v at the end", policy, line.Queue.Max(), line.Queue[len(line.Queue)-1])
		}
		checkSpans(t, policy, r)
	}
}

func checkGPU(t *testing.T, policy string, g GPUTimeline, start units.Instant) {
	t.Helper()
	for name, c := range map[string]struct {
		curve Curve
		most  float64
	}{
		"reserved": {g.Reserved, float64(g.Capacity)}, "used": {g.Used, float64(g.Capacity)},
		"SMACT": {g.SMACT, 1}, "SMOCC": {g.SMOCC, 1}, "DRAMA": {g.DRAMA, 1},
	} {
		if len(c.curve) < 2 || c.curve[0].At != start || c.curve[len(c.curve)-1].Value != 0 {
			t.Errorf("%s, GPU %d: %s has %d points and does not begin at the start and end at 0", policy, g.Index, name, len(c.curve))
			continue
		}
		for i, p := range c.curve {
			if p.Value < 0 || p.Value > c.most {
				t.Errorf("%s, GPU %d: %s of %v", policy, g.Index, name, p.Value)
			}
			if i > 0 && (p.At <= c.curve[i-1].At || p.Value == c.curve[i-1].Value) {
				t.Errorf("%s, GPU %d: %s of %v at %v after %v", policy, g.Index, name, p.Value, p.At, c.curve[i-1])
			}
		}
	}
}

// checkSpans checks that there is one span for each attempt and GPU, and no more.
func checkSpans(t *testing.T, policy string, r Result) {
	t.Helper()
	want, ooms, last := 0, map[int]bool{}, map[model.TaskID][]int{}
	for _, task := range r.Tasks {
		want += len(task.Record.Attempts) * task.Task.GPUs
	}
	for i, s := range r.Timeline.Spans {
		a := r.Tasks[s.Task-1].Record.Attempts[s.Attempt-1]
		if s.Launched != a.Launched || s.Started != a.Started || s.Ended != a.Ended || s.Name != "task" ||
			(s.Outcome == OutcomeOOM) != a.OOM || (s.Outcome == OutcomeOK) != a.OK {
			t.Errorf("%s: %+v of attempt %+v", policy, s, a)
		}
		if i > 0 && s.Launched < r.Timeline.Spans[i-1].Launched {
			t.Errorf("%s: span %d is out of order", policy, i)
		}
		if s.Outcome == OutcomeOOM {
			ooms[int(s.Task)<<8|s.Attempt] = true
		}
		if s.Attempt == len(r.Tasks[s.Task-1].Record.Attempts) {
			last[s.Task] = append(last[s.Task], r.Timeline.GPUs[s.GPU].Index)
		}
	}
	if got := len(r.Timeline.Spans); got != want || len(ooms) != r.Metrics.OOMs {
		t.Errorf("%s: %d spans with %d OOMs, want %d with %d", policy, got, len(ooms), want, r.Metrics.OOMs)
	}
	for _, task := range r.Tasks {
		got := slices.Sorted(slices.Values(task.GPUs))
		if !slices.Equal(got, last[task.ID]) {
			t.Errorf("%s: task %d ended on GPUs %v, its spans say %v", policy, task.ID, got, last[task.ID])
		}
	}
}

// TestTimelineChangesNothing checks that a replay is the same with and without a
// timeline, and that two replays give the same timeline.
func TestTimelineChangesNothing(t *testing.T) {
	cfg := Config{Options: options("magm"), GPUs: station(3), StartUp: time.Second}
	without := mustRun(t, cfg, crowd(60))
	cfg.Timeline = true
	first, again := mustRun(t, cfg, crowd(60)), mustRun(t, cfg, crowd(60))
	if !reflect.DeepEqual(first.Timeline, again.Timeline) {
		t.Error("two runs give two timelines")
	}
	if without.Timeline != nil {
		t.Error("a timeline that nobody asked for")
	}
	if without.Steps != first.Steps || !reflect.DeepEqual(without.Metrics, first.Metrics) {
		t.Errorf("%d steps, %d with a timeline", without.Steps, first.Steps)
	}
}

// TestReservedFollowsTheLedger checks at each step that the curve equals the ledger.
func TestReservedFollowsTheLedger(t *testing.T) {
	cfg := audited(t, Config{Options: options("magm"), GPUs: station(2), Timeline: true})
	audit := cfg.Observe
	type seen struct {
		gpu int
		at  units.Instant
	}
	books := map[seen]units.Bytes{}
	cfg.Observe = func(s *mapper.State, ev model.Event, done []model.Decision) {
		audit(s, ev, done)
		for i, g := range s.GPUs() {
			books[seen{i, s.Now()}] = g.Reserved
		}
	}
	r, err := Run(cfg, crowd(40))
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range books {
		if got := r.Timeline.GPUs[at.gpu].Reserved.At(at.at); got != float64(want) {
			t.Errorf("GPU %d at %v: %v bytes reserved, the ledger says %d", at.gpu, at.at, got, want)
		}
	}
}
