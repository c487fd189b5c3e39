package study

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"carma/mapper/sim"
)

// ParseDrain parses the GPU that is drained for maintenance and the interval since the
// start of the trace, such as 0@2h-4h. With 0@2h-4h,move its tasks are moved. An empty
// text means none.
func ParseDrain(text string) (sim.Drain, error) {
	var none sim.Drain
	if text == "" {
		return none, nil
	}
	wrong := fmt.Errorf("%q is no GPU with two times; write for example 0@2h-4h, or 0@2h-4h,move", text)
	times, move := strings.CutSuffix(text, ",move")
	gpu, times, ok := strings.Cut(times, "@")
	from, until, two := strings.Cut(times, "-")
	n, err := strconv.Atoi(gpu)
	if !ok || !two || err != nil || n < 0 {
		return none, wrong
	}
	d := sim.Drain{GPU: n, Move: move}
	if d.From, err = time.ParseDuration(from); err != nil || d.From < 0 {
		return none, wrong
	}
	if d.Until, err = time.ParseDuration(until); err != nil || d.Until <= d.From {
		return none, wrong
	}
	return d, nil
}

// DrainText returns the drain of the conditions as users type it, or "" if there is none.
func (c Conditions) DrainText() string {
	if c.Drain == (sim.Drain{}) {
		return ""
	}
	text := fmt.Sprintf("%d@%s-%s", c.Drain.GPU, typed(c.Drain.From), typed(c.Drain.Until))
	if c.Drain.Move {
		text += ",move"
	}
	return text
}

// typed formats a time as users type it: 2h, 90m30s, not Go's 2h0m0s.
func typed(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// pauses reports whether a task is idle for a while.
func pauses(t *sim.TaskResult) bool { return t.Pauses }

// maintenanceMetrics measure a drained GPU and tasks that are idle for a while.
var maintenanceMetrics = []Metric{
	{Name: "drained_mean_min", Doc: "mean time until the drained GPU had no task, minutes", pool: func(all []*Outcome) float64 {
		var times []time.Duration
		for _, o := range all {
			times = append(times, o.Result.Metrics.Drained)
		}
		return meanOf(times) / 60
	}},
	{Name: "drained_max_min", Doc: "longest of these times, minutes", pool: func(all []*Outcome) float64 {
		longest := time.Duration(0)
		for _, o := range all {
			longest = max(longest, o.Result.Metrics.Drained)
		}
		return longest.Minutes()
	}},
	{Name: "pausing_failed", Doc: "tasks that do nothing for a while and were ended for it, or failed otherwise", over: sum, of: func(o, _ *Outcome) float64 {
		n := 0
		for i := range o.Result.Tasks {
			if t := &o.Result.Tasks[i]; pauses(t) && !t.Record.Succeeded {
				n++
			}
		}
		return float64(n)
	}},
}
