package estimator

import (
	"cmp"
	"math"
	"slices"
	"time"

	"carma/mapper/model"
)

// Origins of an expectation.
const (
	FromProfile = "profile"         // profile of this workload, or of this model at this batch size
	FromNearest = "nearest profile" // profile of the model at the nearest measured batch size
)

// Expect returns a task's expected loads and run time from the profiles of its model, or
// the zero value if the model has no profile. The run time is the median over all profiles
// of the model on that data set and that many GPUs, because the length of this task's
// training is unknown.
func (c *Catalogue) Expect(q Query) model.Expected {
	if q.Model == "" { // most tasks name no model
		return model.Expected{}
	}
	e, ok := c.workload(fold(q.Model))
	if ok && (q.Batch == 0 || q.Batch == e.Batch || e.Model == "") {
		return c.expected(e, FromProfile)
	}
	entries, known := c.model(fold(q.Model))
	if ok && e.Model != "" {
		entries, known = c.model(fold(e.Model + e.Dataset))
	}
	entries = slices.DeleteFunc(onGPUs(entries, max(q.GPUs, 1)), func(e Entry) bool { return len(e.Loads) == 0 })
	if !known || len(entries) == 0 {
		return model.Expected{}
	}
	batch := cmp.Or(q.Batch, largest(entries).Batch)
	e = slices.MinFunc(entries, func(a, b Entry) int { return cmp.Compare(distance(a.Batch, batch), distance(b.Batch, batch)) })
	if e.Batch == batch {
		return c.expected(e, FromProfile)
	}
	return c.expected(e, FromNearest)
}

// distance returns the absolute value of the logarithm of the ratio of two batch sizes.
func distance(a, b int) float64 {
	return math.Abs(math.Log(float64(max(a, 1)) / float64(max(b, 1))))
}

func (c *Catalogue) expected(e Entry, source string) model.Expected {
	if len(e.Loads) == 0 {
		return model.Expected{}
	}
	var times []time.Duration
	for _, o := range c.entries {
		if o.Model == e.Model && o.Dataset == e.Dataset && o.GPUs == e.GPUs && o.RunTime > 0 {
			times = append(times, o.RunTime)
		}
	}
	out := model.Expected{Loads: slices.Clone(e.Loads), Source: source}
	if slices.Sort(times); len(times) > 0 {
		out.RunTime = times[len(times)/2]
	}
	return out
}
