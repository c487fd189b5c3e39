package monitor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/clock"
	"carma/runner/gpu"
	"carma/runner/limits"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"
)

// TestCoarseActivity checks that samples are marked as coarse. An upper bound and an activity
// are not averaged together.
func TestCoarseActivity(t *testing.T) {
	m := newTestMonitor(newCards(1))
	for i, row := range []struct {
		smact  float64
		coarse bool
		want   float64
	}{{1, true, 1}, {0.2, false, 0.2}, {0.4, false, 0.3}, {0.9, true, 0.9}, {0.9, true, 0.9}} {
		got := m.digest(units.Instant(i), gpu.Sample{UUID: "GPU-a", SMACT: row.smact, Coarse: row.coarse})
		if got.Coarse != row.coarse || got.SMACT != row.want {
			t.Errorf("reading %d: coarse %v, SMACT %v, want %v and %v", i, got.Coarse, got.SMACT, row.coarse, row.want)
		}
	}
	a, b := model.GPUSample{ID: "GPU-a", SMACT: 0.5}, model.GPUSample{ID: "GPU-a", SMACT: 0.5, Coarse: true}
	if equalGPUSample(&a, &b) {
		t.Error("a bound and an activity tell the same")
	}
}

func newTestMonitor(c *cards) *Monitor {
	m, err := New(c, clock.New(1), time.Second, ActivityMean, zerolog.Nop())
	if err != nil {
		panic(err)
	}
	return m
}

// cards is a source of GPUs that show what a test sets.
type cards struct {
	mu      sync.Mutex
	samples []gpu.Sample
	err     error
}

// newCards returns idle GPUs, named GPU-a and so on.
func newCards(n int) *cards {
	c := &cards{}
	for i := range n {
		c.samples = append(c.samples, gpu.Sample{UUID: "GPU-" + string(rune('a'+i))})
	}
	return c
}

func (c *cards) Name() string                               { return "cards" }
func (c *cards) Close() error                               { return nil }
func (c *cards) GPUs(context.Context) ([]gpu.Device, error) { return nil, nil }

func (c *cards) Sample(context.Context) ([]gpu.Sample, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.samples), c.err
}

// set replaces the sample of a GPU, and the error of the next readings.
func (c *cards) set(s gpu.Sample, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples[slices.IndexFunc(c.samples, func(o gpu.Sample) bool { return o.UUID == s.UUID })] = s
	c.err = err
}

// TestUnreadable checks that GPUs get no tasks if they could not be read for the time
// unreadable.
func TestUnreadable(t *testing.T) {
	c := newCards(2)
	m := newTestMonitor(c)
	failure := errors.New("the driver does not answer")
	now := time.Now()
	c.set(gpu.Sample{UUID: "GPU-a", Used: 3 * units.GiB}, nil)
	before, ok := m.sample(t.Context())
	if !ok {
		t.Fatal("no sample")
	}
	for _, after := range []time.Duration{0, unreadable - time.Second} {
		if ev, ok := m.unread(failure, now.Add(after)); ok {
			t.Errorf("after %v: %+v", after, ev)
		}
	}
	var last model.Sampled
	for i := range 2 {
		ev, ok := m.unread(fmt.Errorf("%w %d", failure, i), now.Add(unreadable+time.Duration(i)*time.Second))
		if !ok || ev.GPUs[0].Fault != "it cannot be read: the driver does not answer 0" || ev.GPUs[1].Fault == "" || ev.GPUs[0].Used != 3*units.GiB {
			t.Errorf("after %v: %+v", unreadable, ev)
		}
		if i > 0 && !equalSamples(last, ev) {
			t.Errorf("the journal gets a further event: %+v", ev)
		}
		last = ev
	}
	after, ok := m.sample(t.Context())
	if !ok || !equalSamples(before, after) {
		t.Errorf("readable again: %+v, before %+v", after, before)
	}
	if _, ok := m.unread(failure, now.Add(time.Hour)); ok {
		t.Error("the second time it does not wait")
	}
}

// TestPeaks checks that a task's peak on a GPU is the sum of its processes' peaks.
func TestPeaks(t *testing.T) {
	m := newTestMonitor(newCards(1))
	for _, used := range []units.Bytes{1, 5, 2} {
		m.recordMemory(0, []gpu.Sample{{UUID: "GPU-a", Used: 2 * used, Processes: []gpu.Process{
			{PID: 1, Task: 7, Attempt: 1, Used: used}, {PID: 2, Task: 7, Attempt: 1, Used: used}, {PID: 3, Task: 8, Attempt: 2, Used: 1, Peak: 9},
		}}}, time.Now())
	}
	if a, b := peakOf(m, 7, 1), peakOf(m, 8, 2); a != 10 || b != 9 {
		t.Errorf("peaks %d and %d, want 10 and 9", a, b)
	}
}

func TestRisk(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0}, {[]float64{0.4}, 0.4}, {[]float64{0.4, 0.4, 0.4}, 0.4},
		// mean 0.5, median 0.5, p95 0.95; EMA with alpha 2/3: 0 then 2/3.
		{[]float64{0, 1}, 0.20*0.5 + 0.30*0.5 + 0.30*0.95 + 0.20*2/3},
		// The same in reverse: only the EMA differs.
		{[]float64{1, 0}, 0.20*0.5 + 0.30*0.5 + 0.30*0.95 + 0.20*1/3},
		// mean 0.25, median 0, p95 0.85; EMA with alpha 0.4: 0, 0, 0, 0.4.
		{[]float64{0, 0, 0, 1}, 0.20*0.25 + 0.30*0.85 + 0.20*0.4},
	} {
		if got := risk(tt.values); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("risk of %v is %v, want %v", tt.values, got, tt.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 40).Draw(t, "readings")
		if got := risk(v); got < slices.Min(v)-1e-9 || got > slices.Max(v)+1e-9 {
			t.Fatalf("risk of %v is %v", v, got)
		}
	})
}

// TestActivityOption checks that the monitor uses the configured score.
func TestActivityOption(t *testing.T) {
	for word, want := range map[string]float64{"": 0.5, "mean": 0.5, "risk": 0.67} { // see TestRisk
		c := newCards(1)
		m := newTestMonitor(c)
		var err error
		if m.score, err = scoreOf(word); err != nil {
			t.Fatal(err)
		}
		m.digest(0, gpu.Sample{UUID: "GPU-a"})
		got := m.digest(1, gpu.Sample{UUID: "GPU-a", SMACT: 1, SMOCC: 1, DRAMA: 1})
		if got.SMACT != want || got.SMOCC != want || got.DRAMA != want {
			t.Errorf("%q: %+v, want %v", word, got, want)
		}
	}
	if _, err := scoreOf("median"); err == nil {
		t.Error("an unknown word is taken")
	}
}

func peakOf(m *Monitor, task model.TaskID, attempt int) units.Bytes {
	peak, _ := m.Observed(task, attempt)
	return peak
}

// TestRun checks that a sample that was not accepted is reported again, that unchanged samples
// are not reported, and that the repair of a broken GPU is reported once.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCards(2)
		m := newTestMonitor(c)
		var energy, clients, reset int
		m.SetHooks(Hooks{
			Energy:  func(units.Instant, []gpu.Sample) { energy++ },
			Clients: func([]gpu.Sample) { clients++ },
			Hosts:   func() []model.HostSample { return nil },
			Reset:   func(ids []model.GPUID) { reset += len(ids) },
		})
		m.MarkBroken("GPU-a")
		c.set(gpu.Sample{UUID: "GPU-a", Fault: "broken", Lasts: true}, nil)
		var sizes []int
		ctx, end := context.WithCancel(t.Context())
		defer end()
		go m.Run(ctx, func(ev model.Sampled) bool {
			sizes = append(sizes, len(ev.GPUs))
			return len(sizes) > 1
		})
		synctest.Wait()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if !slices.Equal(sizes, []int{2, 2}) || energy < 3 || clients != energy || reset != 0 {
			t.Errorf("reported %v, %d samples, %d of clients, %d resets", sizes, energy, clients, reset)
		}
		c.set(gpu.Sample{UUID: "GPU-a"}, nil)
		if m.WaitForSample(ctx); !slices.Equal(sizes, []int{2, 2, 1}) {
			t.Errorf("after the reset %v are reported", sizes)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if reset != 1 {
			t.Errorf("%d resets", reset)
		}
		c.set(gpu.Sample{UUID: "GPU-b"}, errors.New("no answer"))
		m.WaitForSample(ctx)
		if m.FailedSince().IsZero() || len(m.Readings()) != 2 {
			t.Error("a failed reading is not known, or took the last samples away")
		}
		c.set(gpu.Sample{UUID: "GPU-b"}, nil)
		if m.WaitForSample(ctx); !m.FailedSince().IsZero() {
			t.Error("the GPUs can be read again")
		}
	})
}

// TestSoftLimits checks that memory that is reserved for a task, but not used by it, does not
// count as memory of other processes.
func TestSoftLimits(t *testing.T) {
	m := newTestMonitor(newCards(1))
	key := gpu.AttemptKey{Task: 7, Attempt: 1}
	others := func(of gpu.Process) units.Bytes {
		return m.digest(0, gpu.Sample{UUID: "GPU-a", Used: 8 * units.GiB, Processes: []gpu.Process{of}}).OtherProcesses
	}
	mine := gpu.Process{Task: 7, Attempt: 1, Used: units.GiB}
	before := others(mine)
	m.SetSoftLimits("box", key, map[string]limits.Limit{"GPU-a": {Soft: int64(5 * units.GiB)}})
	if got := others(mine); before != 7*units.GiB || got != 3*units.GiB {
		t.Errorf("%d of others, before %d", got, before)
	}
	if got := others(gpu.Process{Used: 6 * units.GiB}); got != 6*units.GiB {
		t.Errorf("a process of others counts %d", got)
	}
	if m.ClearSoftLimits("box"); others(mine) != before {
		t.Error("cleared limits count")
	}
}
