package report

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/sim"
)

// sectionData contains the data from which the page's script draws one trace. Times are
// seconds since the start of the replay, rounded to tenths.
type sectionData struct {
	ID    string
	Trace string
	// Length is the length of the longest replay, Queue the largest number of tasks that
	// waited, Power the highest power of all GPUs in watts, under any policy, so that all
	// charts of a kind have the same axes.
	Length, Queue, Power float64
	Kinds                []string
	Names                []string
	Tasks                taskColumns
	Runs                 []runData
	// Many is set if there are too many tasks to list. Evenly spaced quantiles of their
	// times replace them, and there are no attempts.
	Many bool
}

// shownTasks is the largest number of tasks, over all policies, that a report lists. Each
// takes about 100 bytes.
var shownTasks = 60_000 // lower in tests

// stoodFor is the number of quantiles that replace the tasks if there are too many.
const stoodFor = 1000

// taskColumns contains the values of tasks that are the same under every policy.
type taskColumns struct {
	ID     []model.TaskID
	Name   []int // in Names
	Kind   []int // index in Kinds; the last is all other kinds
	At     []float64
	Number map[model.TaskID]int `json:"-"` // index in the columns; only for look-up
}

// runData contains the data of one policy.
type runData struct {
	ID, Policy, Colour string
	GPUs               []gpuData
	Queue, Power       *curveData
	Tasks              outcomeColumns
	Spans              spanColumns
}

// outcomeColumns contains the outcomes of tasks: seconds, the slowdown, joules.
type outcomeColumns struct {
	Waiting, Execution, Lost, Away, JCT, Slowdown []float64
	Energy                                        []float64 `json:",omitempty"`
	Attempts                                      []int
	OOMs                                          []int
	Phase                                         []model.Phase `json:",omitempty"` // if any has not succeeded
}

// spanColumns contains the attempts by GPU: the task's index in the columns, the GPU's in
// GPUs, the time of the launch, the time from launch to start (-1 if it never ran) and
// the time to the end.
type spanColumns struct {
	Task, GPU, Attempt, Outcome []int
	At, Start, Length           []float64
}

// outcomes maps outcomes to their numbers in spanColumns.
var outcomes = map[sim.Outcome]int{sim.OutcomeOK: 0, sim.OutcomeOOM: 1, sim.OutcomeOther: 2, sim.OutcomeAway: 3} // only for look-up

// gpuData contains the data of a GPU. Memory is in GiB, SM activity in per cent. Only the
// first GPUs have curves.
type gpuData struct {
	Index                 int
	Capacity              float64
	Used, Reserved, SMACT *curveData `json:",omitempty"`
}

// curveData is a curve: its steps, or, if they are many, its means over equal parts of
// the time up to End.
type curveData struct {
	X   []float64 `json:",omitempty"`
	Y   []float64
	End float64
}

// A curve with more than exact steps is shown by its means over this number of bins.
const exact, bins = 600, 500

// shownGPUs is the largest number of GPUs with their own curves.
const shownGPUs = 16

func newSectionData(d *Data, id string, colours []string, kinds kindRanks) sectionData {
	s := sectionData{ID: id, Trace: clean(d.Trace), Kinds: []string{}, Length: 1}
	for _, k := range kinds.legend {
		s.Kinds = append(s.Kinds, k.Name)
	}
	all := 0
	for i := range d.Runs {
		all += len(d.Runs[i].Tasks)
	}
	if s.Many = all > shownTasks; !s.Many {
		s.Tasks = s.tasks(d, kinds)
	}
	for i := range d.Runs {
		if line := d.Runs[i].Timeline; line != nil {
			s.Length = max(s.Length, tenth(seconds(line, line.End)))
			s.Queue = max(s.Queue, line.Queue.Max())
		}
	}
	for i := range d.Runs {
		r := s.run(&d.Runs[i])
		r.ID, r.Colour = runID(id, i), "--"+colours[i]
		s.Runs = append(s.Runs, r)
	}
	return s
}

// tasks returns the columns of the run with the most tasks.
func (s *sectionData) tasks(d *Data, kinds kindRanks) taskColumns {
	var most *Run
	for i := range d.Runs {
		if most == nil || len(d.Runs[i].Tasks) > len(most.Tasks) {
			most = &d.Runs[i]
		}
	}
	c := taskColumns{Number: map[model.TaskID]int{}}
	if most == nil {
		return c
	}
	names := map[string]int{} // only for look-up
	var first units.Instant = math.MaxInt64
	for i := range most.Tasks {
		first = min(first, most.Tasks[i].Record.Submitted)
	}
	for i := range most.Tasks {
		t := &most.Tasks[i]
		name := clean(t.Name)
		if _, known := names[name]; !known {
			names[name] = len(s.Names)
			s.Names = append(s.Names, name)
		}
		c.Number[t.ID] = i
		c.ID, c.Name = append(c.ID, t.ID), append(c.Name, names[name])
		c.Kind, c.At = append(c.Kind, kinds.number(t.Kind)), append(c.At, tenth(t.Record.Submitted.Sub(first).Seconds()))
	}
	return c
}

func (s *sectionData) run(r *Run) runData {
	out := runData{Policy: clean(r.Policy), GPUs: []gpuData{}, Tasks: outcomesOf(r.Tasks)}
	if s.Many {
		t := &out.Tasks
		out.Tasks = outcomeColumns{Waiting: thinned(t.Waiting), JCT: thinned(t.JCT), Slowdown: thinned(t.Slowdown)}
	}
	line := r.Timeline
	if line == nil {
		return out
	}
	for i, g := range line.GPUs {
		d := gpuData{Index: g.Index, Capacity: rounded(g.Capacity.GiB(), 100)}
		if i < shownGPUs {
			d.Used, d.Reserved, d.SMACT = curveOf(line, g.Used, 1/float64(units.GiB), 100), curveOf(line, g.Reserved, 1/float64(units.GiB), 100), curveOf(line, g.SMACT, 100, 10)
		}
		out.GPUs = append(out.GPUs, d)
	}
	out.Queue = curveOf(line, line.Queue, 1, 100)
	sum := make([]float64, bins)
	for _, g := range line.GPUs {
		for i, v := range g.Power.Resample(line.Start, line.End, bins) {
			sum[i] += v
		}
	}
	for i := range sum {
		sum[i] = math.Round(sum[i])
		s.Power = max(s.Power, sum[i])
	}
	out.Power = &curveData{Y: sum, End: tenth(seconds(line, line.End))}
	for _, sp := range line.Spans {
		if s.Many {
			break
		}
		out.Spans.add(line, sp, s.Tasks.Number)
	}
	return out
}

func (c *spanColumns) add(line *sim.Timeline, s sim.Span, number map[model.TaskID]int) {
	n, known := number[s.Task]
	if !known {
		n = -1
	}
	start := -1.0
	if s.Started > 0 {
		start = tenth(s.Started.Sub(s.Launched).Seconds())
	}
	c.Task, c.GPU, c.Attempt, c.Outcome = append(c.Task, n), append(c.GPU, s.GPU), append(c.Attempt, s.Attempt), append(c.Outcome, outcomes[s.Outcome])
	c.At, c.Start = append(c.At, tenth(seconds(line, s.Launched))), append(c.Start, start)
	c.Length = append(c.Length, tenth(s.Ended.Sub(s.Launched).Seconds()))
}

func outcomesOf(tasks []Task) (c outcomeColumns) {
	failed, energy := false, false
	for i := range tasks {
		t := &tasks[i]
		l := t.Record.Lifetimes()
		ooms := 0
		for _, a := range t.Record.Attempts {
			if a.OOM {
				ooms++
			}
		}
		c.Waiting, c.Execution, c.Lost = append(c.Waiting, tenths(l.Waiting)), append(c.Execution, tenths(l.Execution)), append(c.Lost, tenths(l.Lost))
		c.Away, c.JCT = append(c.Away, tenths(l.Away)), append(c.JCT, tenths(l.JCT))
		c.Slowdown, c.Energy = append(c.Slowdown, rounded(t.Record.Slowdown(), 1000)), append(c.Energy, math.Round(t.EnergyJ))
		c.Attempts, c.OOMs, c.Phase = append(c.Attempts, len(t.Record.Attempts)), append(c.OOMs, ooms), append(c.Phase, t.Phase)
		failed, energy = failed || t.Phase != model.Succeeded, energy || t.EnergyJ > 0
	}
	if !failed {
		c.Phase = nil
	}
	if !energy {
		c.Energy = nil
	}
	return c
}

// thinned returns evenly spaced quantiles of the values, sorted, including the largest.
func thinned(values []float64) []float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) <= stoodFor {
		return sorted
	}
	out := make([]float64, stoodFor)
	for i := range out {
		out[i] = sorted[(i+1)*len(sorted)/stoodFor-1]
	}
	return out
}

// curveOf returns a curve multiplied by factor and rounded to parts.
func curveOf(line *sim.Timeline, c sim.Curve, factor, parts float64) *curveData {
	out := &curveData{Y: []float64{}, End: tenth(seconds(line, line.End))}
	if len(c) > exact {
		for _, v := range c.Resample(line.Start, line.End, bins) {
			out.Y = append(out.Y, rounded(v*factor, parts))
		}
		return out
	}
	for _, p := range c {
		out.X, out.Y = append(out.X, tenth(seconds(line, p.At))), append(out.Y, rounded(p.Value*factor, parts))
	}
	return out
}

func tenths(d time.Duration) float64 { return tenth(d.Seconds()) }

func tenth(v float64) float64 { return rounded(v, 10) }

// rounded rounds a number to parts of one. A value that is not a number becomes 0.
func rounded(v, parts float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return math.Round(v*parts) / parts
}

// seconds returns the seconds since the start of a timeline.
func seconds(line *sim.Timeline, at units.Instant) float64 { return at.Sub(line.Start).Seconds() }

// text returns the data as JSON that cannot end a script of the page.
func (s sectionData) text() (string, error) {
	b, err := json.Marshal(s) // < > & are escaped
	return string(b), err
}
