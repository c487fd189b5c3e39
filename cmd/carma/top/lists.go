package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/cmd/carma/tasks"
	"carma/mapper/model"
	"carma/runner/api"
)

// list is one of the two lists: started tasks or pending tasks.
type list struct {
	tasks []*api.Task
	all   int // number of tasks, including those hidden by the filter
	first int // first row in its window
	rows  int // rows of its window
}

// The two lists.
const (
	started = iota
	waiting
)

// order is a way to sort the lists.
type order struct {
	name string
	by   func(m *app, a, b *api.Task) int
}

// orders lists the ways to sort the lists, in the order of the key o.
var orders = []order{
	{"place", byPlace},
	{"newest", func(_ *app, a, b *api.Task) int { return cmp.Compare(b.ID, a.ID) }},
	{"name", func(_ *app, a, b *api.Task) int { return cmp.Compare(a.Name, b.Name) }},
	{"user", func(_ *app, a, b *api.Task) int { return cmp.Compare(a.User, b.User) }},
	{"memory", func(m *app, a, b *api.Task) int { return cmp.Compare(m.memory(b), m.memory(a)) }},
	{"time", func(m *app, a, b *api.Task) int {
		now := m.time()
		return cmp.Compare(tasks.TimeOf(b, now), tasks.TimeOf(a, now))
	}},
	{"left", func(_ *app, a, b *api.Task) int { return cmp.Compare(endOf(a), endOf(b)) }},
	{"slowdown", func(_ *app, a, b *api.Task) int { return cmp.Compare(slowdown(b), slowdown(a)) }},
}

// byPlace orders tasks by GPU, then by position in the queue; all others come last.
func byPlace(_ *app, a, b *api.Task) int {
	return cmp.Or(cmp.Compare(placeOf(a), placeOf(b)), cmp.Compare(a.ID, b.ID))
}

func placeOf(t *api.Task) int {
	last := cli.LastAttempt(t)
	switch {
	case t.Finished():
		return 1 << 30
	case cli.Placed(t) && last != nil && len(last.GPUs) > 0:
		return last.GPUs[0].Index
	case t.Position > 0:
		return t.Position
	}
	return 1 << 29
}

// memory returns the memory that a task uses, or the memory that it waits for.
func (m *app) memory(t *api.Task) int64 { return max(m.in[t.ID].used, t.Need) }

func endOf(t *api.Task) int64 {
	if t.Progress == nil || t.Progress.ETA.IsZero() {
		return 1 << 62
	}
	return t.Progress.ETA.Unix()
}

func slowdown(t *api.Task) float64 {
	if t.Progress == nil || t.Progress.Slowdown == nil {
		return 0
	}
	return t.Progress.Slowdown.Value
}

// sort rebuilds the lists, and keeps the cursor on its task.
func (m *app) sort() {
	for i := range m.lists {
		m.lists[i].tasks, m.lists[i].all = m.lists[i].tasks[:0], 0
	}
	for _, t := range m.tasks {
		at := &m.lists[waiting]
		if cli.Placed(t) || t.Suspension != nil || t.Finished() && !t.Started.IsZero() {
			at = &m.lists[started]
		}
		if at.all++; m.fits(t) {
			at.tasks = append(at.tasks, t)
		}
	}
	by := orders[m.view.order].by
	for i := range m.lists {
		slices.SortFunc(m.lists[i].tasks, func(a, b *api.Task) int {
			c := cmp.Or(by(m, a, b), byPlace(m, a, b), cmp.Compare(a.ID, b.ID))
			if m.view.back {
				return -c
			}
			return c
		})
	}
	m.stay()
	m.ask()
}

// stay keeps the cursor on its task or, if the task has left, on the same row.
func (m *app) stay() {
	if !m.atTop {
		if part, row, ok := m.place(m.task); ok {
			m.part = part
			m.scroll(row)
			return
		}
	}
	row := 0
	if !m.atTop {
		row = m.lists[m.part].first
	}
	if len(m.lists[m.part].tasks) == 0 {
		m.part = 1 - m.part
	}
	if m.atTop {
		m.part = started
		if len(m.lists[started].tasks) == 0 {
			m.part = waiting
		}
	}
	l := &m.lists[m.part]
	if len(l.tasks) == 0 {
		m.task = 0
		return
	}
	row = min(row, len(l.tasks)-1)
	m.task = l.tasks[row].ID
	m.scroll(row)
}

// scroll keeps a row of the cursor's list in its window.
func (m *app) scroll(row int) {
	m.layout()
	l := &m.lists[m.part]
	l.first = max(min(l.first, row), row-max(1, l.rows)+1)
	for i := range m.lists {
		l := &m.lists[i]
		l.first = max(0, min(l.first, len(l.tasks)-l.rows))
	}
}

// move moves the cursor by a number of rows, from one list into the other.
func (m *app) move(by int) {
	part, row, ok := m.place(m.task)
	if !ok {
		return
	}
	m.atTop = false
	above := len(m.lists[started].tasks)
	at := row
	if part == waiting {
		at += above
	}
	at = max(0, min(at+by, above+len(m.lists[waiting].tasks)-1))
	if m.part = started; at >= above {
		m.part, at = waiting, at-above
	}
	m.task = m.lists[m.part].tasks[at].ID
	m.scroll(at)
	m.ask()
}

// fits reports whether a task passes the filter.
func (m *app) fits(t *api.Task) bool {
	v := &m.view
	if v.mine && t.UID != m.uid {
		return false
	}
	for _, w := range v.words {
		if !slices.ContainsFunc([]string{t.Name, t.User, t.Group, t.Phase, t.Image, strconv.FormatInt(t.ID, 10)}, func(s string) bool {
			return strings.Contains(strings.ToLower(s), w)
		}) {
			return false
		}
	}
	return v.filters.Fits(t)
}

// filter selects by words in names, users, groups, phases, images and numbers, and by
// filters like carma ps --filter.
func (v *view) filter(text string) error {
	var words []string
	filters := pick.Selector{All: true}
	for word := range strings.FieldsSeq(text) {
		if !strings.Contains(word, "=") {
			words = append(words, strings.ToLower(word))
			continue
		}
		if err := filters.Filter(word); err != nil {
			return err
		}
	}
	v.text, v.words, v.filters = text, words, filters
	return nil
}

// expected returns in a few cells the time at which a waiting task is expected to start.
func (m *app) expected(t *api.Task) string {
	s := m.starts[t.ID]
	if s == nil || t.Finished() {
		return ""
	}
	now := m.time()
	from, to := max(0, s.Earliest.Sub(now)), s.Latest.Sub(now)
	switch {
	case s.Latest.IsZero():
		return cli.Age(from) + "+"
	case to < time.Second:
		return "now"
	case cli.Age(from) == cli.Age(to):
		return cli.Age(to)
	}
	return cli.Age(from) + "-" + cli.Age(to)
}

// gpuNumbers lists the GPUs of a task, with ranges as 0-7, because a long list would be
// cut.
func gpuNumbers(t *api.Task) string {
	last := cli.LastAttempt(t)
	if last == nil || len(last.GPUs) < 3 || !cli.Placed(t) && !t.Finished() {
		return tasks.Where(t)
	}
	var at []int
	for _, g := range last.GPUs {
		at = append(at, g.Index)
	}
	slices.Sort(at)
	var parts []string
	for i := 0; i < len(at); {
		j := i
		for j+1 < len(at) && at[j+1] == at[j]+1 {
			j++
		}
		if j-i >= 2 {
			parts = append(parts, fmt.Sprintf("%d-%d", at[i], at[j]))
		} else {
			for _, n := range at[i : j+1] {
				parts = append(parts, strconv.Itoa(n))
			}
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// hue returns the colour of a phase.
func hue(t *api.Task) sgr {
	switch model.Phase(t.Phase) {
	case model.Running, model.Succeeded:
		return good
	case model.Failed:
		return bad
	case model.Queued, model.Held, model.Estimating, model.Cancelled:
		return plain
	}
	return warn
}

// place returns the position of a task in the lists, or false if it is in none.
func (m *app) place(id int64) (part, row int, ok bool) {
	for part := range m.lists {
		if row := slices.IndexFunc(m.lists[part].tasks, func(t *api.Task) bool { return t.ID == id }); row >= 0 {
			return part, row, true
		}
	}
	return 0, 0, false
}
