package tasks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carma/cmd/carma/cli"
	"carma/runner/api"
)

// row is a row of a table: a task, or tasks of an array or a sweep that are in the same
// phase and have no GPU.
type row struct {
	*api.Task // the first task, see before
	all       []*api.Task
}

// opened returns a row for each task.
func opened(list []api.Task) []row {
	rows := make([]row, len(list))
	for i := range list {
		rows[i] = row{&list[i], []*api.Task{&list[i]}}
	}
	return rows
}

// folded returns one row for the tasks of an array or a sweep that wait, or have ended,
// in the same way, like squeue for the pending tasks of an array. Running and suspended
// tasks have their own rows.
func folded(list []api.Task) []row {
	type key struct{ group, part, phase string }
	at := map[key]int{} // only for look-up
	var rows []row
	for i := range list {
		t := &list[i]
		if t.Group == "" || cli.Placed(t) || t.Suspension != nil {
			rows = append(rows, row{t, []*api.Task{t}})
			continue
		}
		k := key{t.Group, t.Submit.Part, t.Phase}
		n, there := at[k]
		if !there {
			at[k] = len(rows)
			rows = append(rows, row{t, []*api.Task{t}})
			continue
		}
		rows[n].all = append(rows[n].all, t)
		if first := rows[n].Task; before(t, first) {
			rows[n].Task = t
		}
	}
	return rows
}

// before reports whether a waiting task precedes another one in the same phase.
func before(t, other *api.Task) bool {
	if t.Position > 0 && other.Position > 0 {
		return t.Position < other.Position
	}
	return t.ID < other.ID
}

// ids returns the number of a task, or the lowest and the highest number of several tasks.
func (r *row) ids() string {
	low, high := r.ID, r.ID
	for _, t := range r.all {
		low, high = min(low, t.ID), max(high, t.ID)
	}
	if low == high {
		return strconv.FormatInt(low, 10)
	}
	return fmt.Sprintf("%d-%d", low, high)
}

// name returns the name of a task, or exp-[3-100] for exp-3 to exp-100.
func (r *row) name() string {
	if len(r.all) == 1 {
		return r.Task.Name
	}
	first := slices.MinFunc(r.all, func(a, b *api.Task) int { return int(a.ID - b.ID) }).Name
	last := slices.MaxFunc(r.all, func(a, b *api.Task) int { return int(a.ID - b.ID) }).Name
	common := 0
	for common < min(len(first), len(last)) && first[common] == last[common] {
		common++
	}
	common = strings.LastIndexByte(first[:common], '-') + 1
	return fmt.Sprintf("%s[%s-%s]", first[:common], first[common:], last[common:])
}

func (r *row) why() string {
	hint := Hint(r.Task)
	if len(r.all) == 1 {
		return hint
	}
	if r.Finished() { // each task has its own reason
		return fmt.Sprintf("%d tasks", len(r.all))
	}
	return strings.TrimSuffix(fmt.Sprintf("%d tasks; %s", len(r.all), hint), "; ")
}
