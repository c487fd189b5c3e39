package report

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/mapper"
	"carma/mapper/sim"
	"carma/mapper/units"
)

// TestTimeAxis: round figures, few of them, and hours where there are any.
func TestTimeAxis(t *testing.T) {
	for _, c := range []struct {
		length time.Duration
		most   int
		want   string
	}{
		{7*time.Hour + 8*time.Minute, 6, "0, 2 h, 4 h, 6 h"},
		{7*time.Hour + 8*time.Minute, 10, "0, 1 h, 2 h, 3 h, 4 h, 5 h, 6 h, 7 h"},
		{3 * time.Hour, 6, "0, 0.5 h, 1 h, 1.5 h, 2 h, 2.5 h, 3 h"},
		{90 * time.Minute, 6, "0, 15 min, 30 min, 45 min, 60 min, 75 min, 90 min"},
		{100 * time.Second, 6, "0, 30 s, 60 s, 90 s"},
		{0, 6, "0, 1 s"},
		{1927 * time.Hour, 6, "0, 500 h, 1000 h, 1500 h"},
	} {
		var got []string
		for _, tick := range newTimeAxis(c.length, c.most).ticks {
			got = append(got, tick.Label)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %s, want %s", c.length, strings.Join(got, ", "), c.want)
		}
	}
	for _, length := range []time.Duration{1, time.Minute, time.Hour, 1000 * time.Hour, 80000 * time.Hour, math.MaxInt64} {
		if a := newTimeAxis(length, 6); len(a.ticks) < 2 || len(a.ticks) > 7 || a.end < length.Seconds() {
			t.Errorf("%s: %d ticks up to %v s", length, len(a.ticks), a.end)
		}
	}
}

func TestUpTo(t *testing.T) {
	for _, c := range []struct {
		most  float64
		whole bool
		want  string
	}{
		{40, true, "0 10 20 30 40"}, {100, true, "0 25 50 75 100"}, {33, true, "0 10 20 30"}, {1, true, "0 1"}, {0, true, "0 1"}, {0.3, true, "0 1"},
		{2.6, false, "0 1 2"}, {math.NaN(), false, "0 0.25 0.5 0.75 1"}, {1e6, true, "0 250000 500000 750000 1e+06"},
	} {
		end, ticks := upTo(c.most, 4, c.whole)
		var got []string
		for _, tick := range ticks {
			got = append(got, tick.Label)
		}
		if strings.Join(got, " ") != c.want || end < c.most {
			t.Errorf("%v: %s up to %v, want %s", c.most, strings.Join(got, " "), end, c.want)
		}
	}
}

// area under a line, in its units times seconds.
func area(xy points) float64 {
	sum := 0.0
	for i := 1; i < len(xy); i++ {
		sum += (xy[i].X - xy[i-1].X) * (xy[i].Y + xy[i-1].Y) / 2
	}
	return sum
}

// TestStepsKeepTheArea: what is drawn holds what the curve holds, with few
// points, whatever the curve has.
func TestStepsKeepTheArea(t *testing.T) {
	for _, tasks := range []int{6, 400} {
		line := simulated(t, tasks, 1, "magm").Runs[0].Timeline
		for name, c := range map[string]sim.Curve{"used": line.GPUs[0].Used, "SMACT": line.GPUs[0].SMACT, "queue": line.Queue} {
			xy := steps(line, c, 2, narrowBins)
			if got, want := area(xy), 2*c.Integral(line.Start, line.End); math.Abs(got/want-1) > 1e-9 {
				t.Errorf("%s of %d tasks: an area of %v, want %v", name, tasks, got, want)
			}
			if len(xy) > 2*exact+1 || len(c) > exact && len(xy) > 2*narrowBins+1 {
				t.Errorf("%s of %d tasks: %d points for %d", name, tasks, len(xy), len(c))
			}
			if last := xy[len(xy)-1].X; xy[0].X != 0 || last != seconds(line, line.End) {
				t.Errorf("%s of %d tasks goes from %v to %v s", name, tasks, xy[0].X, last)
			}
		}
	}
	d := simulated(t, 60, 3, "magm")
	if got, want := area(totalPower(d.Runs[0].Timeline)), d.Runs[0].Metrics.EnergyJ; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("%v J, the metrics say %v", got, want)
	}
}

// framed is a run's spans, as the charts get them.
func framed(d Data) frame {
	r := &d.Runs[0]
	f := frame{line: r.Timeline, spans: r.Timeline.Spans, tasks: map[mapper.TaskID]*Task{}, kinds: rankKinds(d.Runs)}
	for i := range r.Tasks {
		f.tasks[r.Tasks[i].ID] = &r.Tasks[i]
	}
	return f
}

// TestLeash: an attempt that was suspended is joined by a line with where it came back,
// and with nothing else; the legend says what that is.
func TestLeash(t *testing.T) {
	at := func(n int) units.Instant {
		return units.InstantOf(time.Unix(1_700_000_000, 0)).Add(time.Duration(n) * time.Minute)
	}
	span := func(task mapper.TaskID, gpu, from, to int, o sim.Outcome) sim.Span {
		return sim.Span{Task: task, Name: "<x>", GPU: gpu, Attempt: 1, Launched: at(from), Started: at(from), Ended: at(to), Outcome: o}
	}
	line := &sim.Timeline{Start: at(0), End: at(100), GPUs: []sim.GPUTimeline{{Index: 0}, {Index: 3}}, Spans: []sim.Span{
		span(1, 0, 0, 10, sim.OutcomeAway), span(2, 0, 10, 30, sim.OutcomeOK), span(1, 1, 30, 40, sim.OutcomeAway), span(1, 0, 55, 60, sim.OutcomeOK), span(3, 1, 60, 70, sim.OutcomeAway),
	}}
	r := &Run{Policy: "magm", Timeline: line}
	fig, err := whatRan(r, rankKinds([]Run{*r}), newTimeAxis(100*time.Minute, 6))
	if err != nil {
		t.Fatal(err)
	}
	svg := string(fig.SVG)
	if n := strings.Count(svg, `<g class="away">`); n != 2 {
		t.Errorf("%d lines, want 2: %s", n, svg)
	}
	for _, want := range []string{"task 1: &lt;x&gt; · suspended on GPU 0 for 20m00s, back on GPU 3", "suspended on GPU 3 for 15m00s, back on GPU 0"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in %s", want, svg)
		}
	}
	view, err := newRunView(r, palette([]Run{*r})[0], newScales([]Run{*r}), rankKinds([]Run{*r}))
	if err != nil || !view.Away {
		t.Errorf("the legend: %v, %v", view.Away, err)
	}
}

// TestLanes: tasks on one GPU at one time are in different lanes.
func TestLanes(t *testing.T) {
	g := newGantt(framed(simulated(t, 80, 2, "magm")))
	collocated := false
	for i, a := range g.spans {
		for j, b := range g.spans[:i] {
			if a.GPU != b.GPU || a.Launched >= b.Ended || b.Launched >= a.Ended {
				continue
			}
			collocated = true
			if g.lanes[i] == g.lanes[j] {
				t.Errorf("tasks %d and %d are both in lane %d of GPU %d", a.Task, b.Task, g.lanes[i], a.GPU)
			}
		}
		if b := g.bands[a.GPU]; float64(g.lanes[i]+1)*g.lane > b.height+1e-9 {
			t.Errorf("task %d is in lane %d of a band with %v of room", a.Task, g.lanes[i], b.height)
		}
	}
	if !collocated {
		t.Error("no two tasks ran together")
	}
	f, err := g.figure(newTimeAxis(time.Hour, 6), "")
	if first, last := strings.Index(string(f.SVG), `<g class="oom">`), strings.LastIndex(string(f.SVG), `<g class="k`); err != nil || first < last {
		t.Errorf("what ran out of memory, at %d, is under what comes until %d: %v", first, last, err)
	}
	for i := 1; i < len(g.bands); i++ {
		if g.bands[i].top < g.bands[i-1].top+g.bands[i-1].height {
			t.Errorf("band %d begins in the one above", i)
		}
	}
}

// TestManyAttempts are shown by their number, and the page stays small.
func TestManyAttempts(t *testing.T) {
	d := simulated(t, shownSpans+400, 2, "magm")
	html := written(t, d)
	c := parse(t, html)
	if c.elements["rect"] != 0 || !strings.Contains(c.text, "attempts are too many to show each") || len(html) > 400_000 {
		t.Errorf("%d rectangles, %d bytes", c.elements["rect"], len(html))
	}
	ooms, all := 0, 0
	f := newDensity(framed(d))
	for gpu := range f.counts {
		want, got := 0.0, 0.0
		for _, s := range f.spans {
			if s.GPU == gpu {
				want += s.Ended.Sub(s.Launched).Seconds()
			}
			if s.GPU == gpu && s.Outcome == sim.OutcomeOOM {
				ooms--
			}
		}
		for _, l := range f.counts[gpu] {
			for _, v := range l.mean {
				got += v * f.seconds
			}
		}
		for _, n := range f.ooms[gpu] {
			ooms, all = ooms+n, all+n
		}
		if ooms != 0 {
			t.Errorf("GPU %d: %d OOMs more are shown than there were", gpu, ooms)
		}
		if math.Abs(got/want-1) > 1e-9 {
			t.Errorf("GPU %d: %v attempt seconds are shown, there were %v", gpu, got, want)
		}
	}
	if all == 0 || all != d.Runs[0].Metrics.OOMs {
		t.Errorf("%d OOMs are shown, there were %d", all, d.Runs[0].Metrics.OOMs)
	}
}

// TestManyGPUs: the page says what it leaves out.
func TestManyGPUs(t *testing.T) {
	c := parse(t, written(t, simulated(t, 30, shownBands+1, "magm")))
	if !strings.Contains(c.text, "The first 16 of 33 GPUs.") || !strings.Contains(c.text, "The first 32 of 33 GPUs.") {
		t.Error("it is not said that GPUs are left out")
	}
}

func TestCumulative(t *testing.T) {
	if got, want := cumulative([]float64{1, 3}), (points{{X: 1}, {X: 1}, {X: 1, Y: 50}, {X: 3, Y: 50}, {X: 3, Y: 100}}); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	many := make([]float64, 100_000)
	for i := range many {
		many[i] = float64(i)
	}
	got := cumulative(many)
	if n := len(got); n > 2*curvePoints+3 || got[n-1] != (points{{X: 99_999, Y: 100}})[0] {
		t.Errorf("%d points, the last %v", n, got[n-1])
	}
	for i := 1; i < len(got); i++ {
		if got[i].X < got[i-1].X || got[i].Y < got[i-1].Y {
			t.Fatalf("it goes back at %d", i)
		}
	}
}

// TestKinds: the colours go to the kinds with the most GPU time, under all
// policies the same.
func TestKinds(t *testing.T) {
	d := simulated(t, 60, 2, "exclusive", "magm")
	k := rankKinds(d.Runs)
	if len(k.legend) != shownKinds+1 || k.legend[shownKinds].Name != "3 more kinds" || k.class("nobody's") != "rest" {
		t.Errorf("%v", k.legend)
	}
	share := func(kind string) (sum float64) {
		for _, r := range d.Runs {
			for _, s := range r.Timeline.Spans {
				if r.Tasks[s.Task-1].Kind == kind {
					sum += s.Ended.Sub(s.Launched).Seconds()
				}
			}
		}
		return sum
	}
	for i := 1; i < shownKinds; i++ {
		if share(k.legend[i].Name) > share(k.legend[i-1].Name) {
			t.Errorf("%s has more GPU time than %s", k.legend[i].Name, k.legend[i-1].Name)
		}
	}
}

// TestPalette: a policy has its colour whatever stands beside it, and no two
// of a page share one while there are enough.
func TestPalette(t *testing.T) {
	of := func(policies ...string) (classes []string) {
		var runs []Run
		for _, p := range policies {
			runs = append(runs, Run{Policy: p})
		}
		for _, c := range palette(runs) {
			classes = append(classes, c.class)
		}
		return classes
	}
	if all, two := of("exclusive", "round-robin", "magm", "lug"), of("lug", "magm"); two[0] != all[3] || two[1] != all[2] {
		t.Errorf("%v, two of them %v", all, two)
	}
	all := of(mapper.PolicyNames()...)
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != len(mapper.PolicyNames()) {
		t.Errorf("%d colours for %d policies", n, len(mapper.PolicyNames()))
	}
	if got := of("magm", "unknown", "exclusive"); !slices.Equal(got, []string{"p0", "p1", "p2"}) {
		t.Errorf("%v", got)
	}
}
