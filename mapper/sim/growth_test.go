package sim

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"carma/configs/traces"
	"carma/configs/workloads"
	"carma/mapper/model"
)

// generatedTasks returns n tasks drawn like carma's generated traces, 100,000 from each
// seed, with gaps shortened for a larger server.
func generatedTasks(b testing.TB, n, shorter int) []Task {
	b.Helper()
	tasks, start := make([]Task, 0, n), time.Duration(0)
	for seed := uint64(1); len(tasks) < n; seed++ {
		tr, err := traces.Generate(traces.GenerateOptions{Seed: seed, Tasks: min(n-len(tasks), 100_000)})
		if err != nil {
			b.Fatal(err)
		}
		for _, in := range tr.Tasks {
			t := workloadTask(b, in.Workload)
			t.At = start + in.At/time.Duration(shorter)
			tasks = append(tasks, t)
		}
		start = tasks[len(tasks)-1].At + time.Minute/time.Duration(shorter)
	}
	return tasks
}

var workloadTasks = map[string]Task{}

// workloadTask returns a task of a shipped workload with a correct memory estimate.
func workloadTask(b testing.TB, name string) Task {
	if t, ok := workloadTasks[name]; ok {
		return t
	}
	w, err := workloads.Find(name)
	if err != nil {
		b.Fatal(err)
	}
	c, err := w.Campaign("")
	if err != nil {
		b.Fatal(err)
	}
	peaks, err := w.Peaks("")
	if err != nil {
		b.Fatal(err)
	}
	t := Task{
		Name: name, GPUs: w.GPUs, SoloTime: c.RunTime, Context: workloads.Context(""), Memory: peaks,
		Estimate: model.Estimate{Memory: slices.Max(peaks)},
	}
	for _, a := range w.Activities() {
		t.Loads = append(t.Loads, Load{SMACT: a.SMACT, SMOCC: a.SMOCC, DRAMA: a.DRAMA, Step: w.StepTime().Seconds()})
	}
	workloadTasks[name] = t
	return t
}

// used returns the processor time of this process so far, which other programs disturb
// less than the wall clock, and its peak resident memory, in MiB. These are one replay's
// only if nothing else ran in the process: test/lab/growth runs replays one by one.
func used(b *testing.B) (processor time.Duration, peak float64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), float64(u.Maxrss) / 1024 // KiB on Linux
}

// BenchmarkGrowth replays longer and longer traces on 64 GPUs. The time of an event must not
// grow with the trace. Tasks arrive so fast that the GPUs are busy and few wait ("steady"), or
// more than three times as fast, so that most of the trace is queued at some time ("backlog").
func BenchmarkGrowth(b *testing.B) {
	for _, load := range []struct {
		name    string
		shorter int // factor by which gaps are shorter than in a trace for four GPUs
	}{{"steady", 9}, {"backlog", 32}} {
		for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", load.name, n), func(b *testing.B) {
				if testing.Short() && n > 100_000 {
					b.Skip("takes half a minute")
				}
				tasks := generatedTasks(b, n, load.shorter)
				events, waiting := 0, time.Duration(0)
				before, _ := used(b)
				for b.Loop() {
					r, err := Run(Config{Options: options("magm"), GPUs: station(64), StartUp: time.Second}, tasks)
					if err != nil {
						b.Fatal(err)
					}
					events += r.Steps
					waiting = r.Metrics.MeanWaiting
				}
				after, peak := used(b)
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
				b.ReportMetric(float64((after-before).Nanoseconds())/float64(events), "cpu-ns/event")
				b.ReportMetric(float64(events)/float64(b.N)/float64(n), "events/task")
				b.ReportMetric(waiting.Seconds(), "waiting-s") // mean
				b.ReportMetric(peak, "peak-MiB")
			})
		}
	}
}
