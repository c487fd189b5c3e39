package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/sim"
)

// traceEvent is an event of the Trace Event Format, which Perfetto (ui.perfetto.dev) and
// chrome://tracing draw. Times are in microseconds.
type traceEvent struct {
	Name string         `json:"name"`
	Ph   string         `json:"ph"` // X is a span, C a counter, M a name, s and f an arrow
	TS   float64        `json:"ts"`
	Dur  float64        `json:"dur,omitempty"`
	PID  int            `json:"pid"`
	TID  int            `json:"tid"`
	ID   string         `json:"id,omitempty"`
	BP   string         `json:"bp,omitempty"`
	Cat  string         `json:"cat,omitempty"`
	Args map[string]any `json:"args,omitempty"`
}

// traceWriter writes events one after the other.
type traceWriter struct {
	w     *bufio.Writer
	err   error
	first bool
	pid   int // number of the last row
}

// WriteChromeTrace writes the timeline of each GPU as a Chrome trace: a row for each GPU
// of each policy and trace, with its tasks, memory, activity and power, and one for the
// queue. Arrows connect a task's suspension with its resumption.
func WriteChromeTrace(w io.Writer, data []Data) error {
	t := &traceWriter{w: bufio.NewWriter(w), first: true}
	fmt.Fprint(t.w, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")
	for _, d := range data {
		for i := range d.Runs {
			if d.Runs[i].Timeline != nil {
				t.run(&d, &d.Runs[i])
			}
		}
	}
	fmt.Fprint(t.w, "\n]}\n")
	if t.err == nil {
		t.err = t.w.Flush()
	}
	return t.err
}

func (t *traceWriter) put(e traceEvent) {
	b, err := json.Marshal(e)
	if t.err = firstError(t.err, err); t.err != nil {
		return
	}
	if !t.first {
		t.w.WriteByte(',')
	}
	t.first = false
	t.w.WriteByte('\n')
	t.w.Write(b)
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// row begins a new row, and returns its number.
func (t *traceWriter) row(name string) int {
	t.pid++
	t.put(traceEvent{Name: "process_name", Ph: "M", PID: t.pid, Args: map[string]any{"name": name}})
	t.put(traceEvent{Name: "process_sort_index", Ph: "M", PID: t.pid, Args: map[string]any{"sort_index": t.pid}})
	return t.pid
}

func (t *traceWriter) run(d *Data, r *Run) {
	line, title := r.Timeline, d.Trace+", "+r.Policy
	at := func(i units.Instant) float64 { return float64(i.Sub(line.Start)) / float64(time.Microsecond) }
	queue := t.row(title + ": queue")
	t.counter(queue, "tasks that wait", at, counted{"waiting", line.Queue, 1})
	tasks := map[model.TaskID]*Task{}
	for i := range r.Tasks {
		tasks[r.Tasks[i].ID] = &r.Tasks[i]
	}
	rows := make([]int, len(line.GPUs))
	for i := range line.GPUs {
		g := &line.GPUs[i]
		rows[i] = t.row(fmt.Sprintf("%s: GPU %d %s", title, g.Index, g.Model))
		t.counter(rows[i], "memory, GiB", at, counted{"reserved", g.Reserved, 1 << 30}, counted{"used", g.Used, 1 << 30})
		t.counter(rows[i], "SM activity, %", at, counted{"SM activity", g.SMACT, 0.01})
		t.counter(rows[i], "power, W", at, counted{"power", g.Power, 1})
	}
	lanes := lanesOf(line.Spans, len(line.GPUs))
	left := map[string]bool{} // arrows that have begun
	for i, s := range line.Spans {
		t.span(s, rows[s.GPU], lanes[i]+1, at, tasks[s.Task], left)
	}
}

// span writes an attempt on a GPU, and the ends of its arrows.
func (t *traceWriter) span(s sim.Span, pid, tid int, at func(units.Instant) float64, task *Task, left map[string]bool) {
	name := s.Name
	args := map[string]any{"task": s.Task, "attempt": s.Attempt, "outcome": outcomeWord(s.Outcome)}
	if task != nil {
		name = task.Name
		args["kind"] = task.Kind
	}
	e := traceEvent{
		Name: fmt.Sprintf("%d %s", s.Task, name), Cat: string(s.Outcome), Ph: "X",
		TS: at(s.Launched), Dur: max(1, at(s.Ended)-at(s.Launched)), PID: pid, TID: tid, Args: args,
	}
	t.put(e)
	arrow := fmt.Sprintf("%d/%d", s.Task, s.Attempt)
	join := traceEvent{Name: "suspended", Cat: "away", ID: arrow, PID: pid, TID: tid}
	if left[arrow] {
		join.Ph, join.BP, join.TS = "f", "e", e.TS
		t.put(join)
	}
	if left[arrow] = s.Outcome == sim.OutcomeAway; left[arrow] {
		join.Ph, join.BP, join.TS = "s", "", e.TS+e.Dur-0.5
		t.put(join)
	}
}

func outcomeWord(o sim.Outcome) string {
	switch o {
	case sim.OutcomeOOM:
		return "out of GPU memory"
	case sim.OutcomeAway:
		return "suspended"
	}
	return string(o)
}

// counted is one value of a counter, divided by unit.
type counted struct {
	name  string
	curve sim.Curve
	unit  float64
}

// counter writes values that hold from their instants on, at each change of any of them.
func (t *traceWriter) counter(pid int, name string, at func(units.Instant) float64, all ...counted) {
	var when []units.Instant
	for _, s := range all {
		for _, p := range s.curve {
			when = append(when, p.At)
		}
	}
	slices.Sort(when)
	next, now := make([]int, len(all)), make([]float64, len(all))
	for _, i := range slices.Compact(when) {
		args := map[string]any{}
		for j, s := range all {
			for next[j] < len(s.curve) && s.curve[next[j]].At <= i {
				now[j] = s.curve[next[j]].Value / s.unit
				next[j]++
			}
			args[s.name] = now[j]
		}
		t.put(traceEvent{Name: name, Ph: "C", TS: at(i), PID: pid, Args: args})
	}
}
