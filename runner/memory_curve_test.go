package runner

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"

	"pgregory.net/rapid"
)

// TestCurve: whatever is sampled, a curve stays short and in order, and its
// highest point is the highest sample.
func TestCurve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, now, peak := curve{}, units.Instant(rapid.Int64Range(0, 1e18).Draw(t, "began")), units.Bytes(0)
		every := rapid.SampledFrom([]time.Duration{0, time.Nanosecond, time.Second, time.Hour}).Draw(t, "every")
		for range rapid.IntRange(1, 2000).Draw(t, "samples") {
			used := units.Bytes(rapid.Int64Range(0, 80).Draw(t, "used"))
			c.add(now, used)
			peak = max(peak, used)
			now = now.Add(every)
		}
		highest := units.Bytes(0)
		for i, used := range c.Used {
			highest = max(highest, used)
			if i > 0 && c.At[i] <= c.At[i-1] {
				t.Fatalf("step %d is at %d, the one before at %d", i, c.At[i], c.At[i-1])
			}
		}
		if highest != peak || len(c.At) > maxCurve || len(c.At) != len(c.Used) {
			t.Fatalf("%d points, highest %d of %d", len(c.At), highest, peak)
		}
	})
}

// TestCurveIsKept: the memory curve of an attempt is there while it runs, after
// its end and after a restart. Listings do not have it.
func TestCurveIsKept(t *testing.T) {
	g := newRig(t)
	g.script("train", untilStopped)
	ref := g.run(api.Submit{Image: "train", Mem: int64(8 * units.GiB)})
	task := g.running(ref)
	highest := func() (most int64) {
		task, err := g.api.Task(g.ctx(), ref)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range task.Attempts[0].Curve {
			most = max(most, p.Used)
		}
		return most
	}
	sample := func(used units.Bytes) {
		g.cards.set(gpu.Sample{UUID: task.Attempts[0].GPUs[0].UUID, Used: used, Processes: []gpu.Process{
			{Task: model.TaskID(task.ID), Attempt: 1, Used: used / 4}, {Task: model.TaskID(task.ID), Attempt: 1, Used: used - used/4},
		}})
	}
	sample(4 * units.GiB)
	g.eventually("4 GiB are seen", func() bool { return highest() == int64(4*units.GiB) })
	sample(7 * units.GiB)
	g.eventually("7 GiB are seen", func() bool { return highest() == int64(7*units.GiB) })
	if _, err := g.api.Stop(g.ctx(), ref, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	if task := g.finished(ref); task.Attempts[0].Peak != int64(7*units.GiB) {
		t.Errorf("peak %d", task.Attempts[0].Peak)
	}
	g.restart()
	if most := highest(); most != int64(7*units.GiB) {
		t.Errorf("after a restart the curve goes up to %d", most)
	}
	if all, err := g.api.Tasks(g.ctx(), api.ListOptions{All: true}); err != nil || len(all) != 1 || all[0].Attempts[0].Curve != nil {
		t.Errorf("listed: %+v, %v", all, err)
	}
}

// TestCurveIsExactWhileShort: a short curve has every change, at its time.
func TestCurveIsExactWhileShort(t *testing.T) {
	var c curve
	for i, used := range []units.Bytes{1, 1, 5, 5, 5, 3} {
		c.add(units.Instant(100+10*i), used)
	}
	if got := c.view(); len(got) != 3 || got[1].Used != 5 || !got[1].At.Equal(units.Instant(120).Time()) || got[2].Used != 3 || !got[2].At.Equal(units.Instant(150).Time()) {
		t.Errorf("curve %+v", got)
	}
}
