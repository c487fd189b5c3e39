package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"time"

	"carma/mapper"
	"carma/mapper/sim"
)

// section is what the page says of one trace.
type section struct {
	ID          string
	Trace       string
	Description string
	Facts       []string
	Header      []string
	Rows        []row
	RatioTo     string
	Policies    []legendEntry
	Compared    []figure
	Alike       string
	Runs        []runView
}

// runView is what it says of one policy.
type runView struct {
	ID     string
	Policy legendEntry
	Gist   string
	Chart  *figure // of what ran where
	Kinds  []legendEntry
	// OOMs, Stopped and Away: such attempts are in the chart.
	OOMs, Stopped, Away bool
	Groups              []group
	Failed              []string
	Users               []userRow
}

// userRow is a user's line: texts.
type userRow struct{ Name, Tasks, GPUTime, Energy, Share string }

// group is pictures of one kind, beside each other where there is room.
type group struct {
	Title, Note string
	Wide        bool
	Legend      []legendEntry
	Figures     []figure
}

// figure is one picture.
type figure struct {
	Caption string
	SVG     template.HTML
	Note    string
}

// legendEntry is a name and the class of its colour in style.css.
type legendEntry struct{ Name, Class string }

// shownGPUs is how many GPUs have pictures of their own, shownBands how many
// a Gantt chart has room for, shownFailures how many failed tasks are named.
const (
	shownGPUs     = 16
	shownBands    = 32
	shownFailures = 20
)

func newSection(d *Data, n int) (section, error) {
	s := section{ID: fmt.Sprintf("t%d", n), Trace: clean(d.Trace), Description: clean(d.Description), Facts: facts(d)}
	if len(d.Runs) == 0 {
		return s, nil
	}
	first := d.reference()
	s.RatioTo = clean(first.Policy)
	s.Header, s.Rows = summary(d.Runs, first)
	colours := palette(d.Runs)
	for i := range d.Runs {
		s.Policies = append(s.Policies, legendEntry{clean(d.Runs[i].Policy), colours[i].class})
	}
	s.Alike = alike(d.Runs)
	var err error
	if s.Compared, err = compared(d.Runs); err != nil {
		return s, err
	}
	sc, kinds := newScales(d.Runs), rankKinds(d.Runs)
	for i := range d.Runs {
		r, err := newRunView(&d.Runs[i], colours[i], sc, kinds)
		if err != nil {
			return s, err
		}
		r.ID = fmt.Sprintf("%sp%d", s.ID, i+1)
		s.Runs = append(s.Runs, r)
	}
	return s, nil
}

func newRunView(r *Run, c colour, sc scales, kinds kindRanks) (runView, error) {
	m := &r.Metrics
	v := runView{Policy: legendEntry{clean(r.Policy), c.class}, Failed: failures(r.Tasks), Users: users(r)}
	v.Gist = fmt.Sprintf("makespan %s, mean JCT %s, %s of SM activity, %s", Span(m.Makespan), Span(m.MeanJCT), percent(m.MeanSMACT), energy(m.EnergyJ))
	if r.Timeline == nil || len(r.Timeline.GPUs) == 0 {
		return v, nil
	}
	chart, err := whatRan(r, kinds, sc.time(chartTicks))
	if err != nil {
		return v, err
	}
	v.Chart, v.Kinds, v.OOMs = &chart, kinds.legend, m.OOMs > 0
	v.Stopped = slices.ContainsFunc(r.Timeline.Spans, func(s sim.Span) bool { return s.Outcome == sim.OutcomeOther })
	v.Away = len(r.Timeline.Spans) <= shownSpans && slices.ContainsFunc(r.Timeline.Spans, func(s sim.Span) bool { return s.Outcome == sim.OutcomeAway })
	v.Groups, err = overTime(r.Timeline, c, sc)
	return v, err
}

// facts are the conditions of a replay, each a short phrase.
func facts(d *Data) []string {
	var out []string
	if len(d.Runs) > 0 {
		out = append(out, fmt.Sprintf("%d tasks", d.Runs[0].Metrics.Tasks))
	}
	if d.Server != "" {
		out = append(out, "server "+clean(d.Server))
	}
	for i := 0; i < len(d.GPUs); {
		n := i
		for n < len(d.GPUs) && d.GPUs[n].Model == d.GPUs[i].Model && d.GPUs[n].Memory == d.GPUs[i].Memory {
			n++
		}
		out = append(out, fmt.Sprintf("%d × %s with %.4g GiB", n-i, clean(d.GPUs[i].Model), d.GPUs[i].Memory.GiB()))
		i = n
	}
	for _, f := range d.Facts {
		out = append(out, clean(f))
	}
	if len(d.Runs) > 0 && d.Runs[0].Metrics.LowerBound > 0 {
		out = append(out, "no schedule is shorter than "+Span(d.Runs[0].Metrics.LowerBound))
	}
	return out
}

// users are the lines of the table of users, with one of the energy that no task
// had a part in; none where there is one user only.
func users(r *Run) []userRow {
	if len(r.Users) < 2 {
		return nil
	}
	line := func(name string, tasks, time string, j float64) userRow {
		return userRow{name, tasks, time, energy(j), percent(j / max(1, r.Metrics.EnergyJ))}
	}
	var rows []userRow
	for _, u := range r.Users {
		rows = append(rows, line(cmp.Or(clean(u.Name), "(none)"), fmt.Sprint(u.Tasks), Span(u.GPUTime), u.EnergyJ))
	}
	return append(rows, line("GPUs without tasks", "", "", r.Metrics.IdleJ))
}

func failures(tasks []Task) []string {
	var out []string
	n := 0
	for i := range tasks {
		t := &tasks[i]
		if t.Phase == mapper.Succeeded {
			continue
		}
		if n++; n <= shownFailures {
			out = append(out, clean(fmt.Sprintf("task %d (%s) %s: %s", t.ID, t.Name, t.Phase, t.Reason)))
		}
	}
	if n > shownFailures {
		out = append(out, fmt.Sprintf("and %d more", n-shownFailures))
	}
	return out
}

// scales are the axes that all runs of a trace share, so that their pictures
// can be compared.
type scales struct {
	length               time.Duration
	memory, power, queue float64 // GiB of one GPU, watts of all, tasks
}

func newScales(runs []Run) scales {
	sc := scales{length: time.Second}
	for i := range runs {
		line := runs[i].Timeline
		if line == nil {
			continue
		}
		sc.length = max(sc.length, line.End.Sub(line.Start))
		sc.queue = max(sc.queue, line.Queue.Max())
		for _, g := range line.GPUs {
			sc.memory = max(sc.memory, g.Capacity.GiB())
		}
		for _, p := range totalPower(line) {
			sc.power = max(sc.power, p.Y)
		}
	}
	return sc
}

func (sc scales) time(ticks int) timeAxis { return newTimeAxis(sc.length, ticks) }

// totalPower is the draw of all GPUs in watts over seconds since the start.
func totalPower(line *sim.Timeline) points {
	sum := make([]float64, wideBins)
	for _, g := range line.GPUs {
		for i, v := range g.Power.Resample(line.Start, line.End, wideBins) {
			sum[i] += v
		}
	}
	return binned(line, sum)
}
