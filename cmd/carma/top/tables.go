package top

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/server"
	"carma/cmd/carma/tasks"
	"carma/runner/api"
)

// gpuTable returns a row for each GPU. If there are too many GPUs, the last row
// summarizes the others.
func (m *app) gpuTable() []string {
	rows := m.gpuLines()
	shown := m.gpus[:rows]
	if rows < len(m.gpus) {
		shown = m.gpus[:rows-1]
	}
	head, lines := m.gpuRows(shown, true)
	lines = append([]string{title.of(head)}, lines...)
	if more := m.gpus[len(shown):]; len(more) > 0 {
		var used, whole int64
		for _, g := range more {
			used, whole = used+g.Used, whole+g.Capacity
		}
		lines = append(lines, m.glyphs.fit(fmt.Sprintf("    and %d more GPUs, %s of %s GiB used; g shows all", len(more), cli.GiB(used), cli.GiB(whole)), m.width))
	}
	return lines
}

// gpuRows lays out GPUs. named is set if the last column contains their tasks.
func (m *app) gpuRows(gpus []api.GPU, named bool) (head string, lines []string) {
	g := m.glyphs
	columns := []column{
		{title: "GPU", right: true}, {title: m.legend(), short: "MEMORY", least: 14, share: 2, most: 120},
		{title: "RESERVED", right: true}, {title: "USED", right: true}, {title: "FOREIGN", right: true, worth: 1, rare: true}, {title: "TOTAL", right: true, worth: 3},
		{title: "SMACT", right: true, worth: 5}, {title: "POWER", right: true, worth: 4},
	}
	if named {
		columns = append(columns, column{title: "TASKS", least: 15, share: 1})
	}
	barWidth := m.width / 4
	var rows [][]cell
	for i := range gpus {
		v := &gpus[i]
		foreign := ""
		if v.Foreign > 0 {
			foreign = cli.GiB(v.Foreign)
		}
		row := []cell{
			{text: strconv.Itoa(v.Index)}, {text: strings.Repeat(" ", barWidth), draw: func(w int) string { return g.bar(v, w) }},
			{text: cli.GiB(v.Reserved)}, {text: cli.GiB(v.Used)}, {text: foreign, as: bad}, {text: cli.GiB(v.Capacity)},
			{text: server.SMACT(*v)}, {text: fmt.Sprintf("%.0fW", v.PowerW)},
		}
		if named {
			parts := server.Residents(*v, 1000)
			row = append(row, cell{text: strings.Join(parts, ", "), draw: func(w int) string { return m.present(v, w) }})
		}
		rows = append(rows, row)
	}
	head, _, lines = g.grid(columns, rows, m.width)
	return head, lines
}

// legend explains the bars.
func (m *app) legend() string {
	g := m.glyphs
	return fmt.Sprintf("%s used %s reserved %s foreign", g.used, g.booked, g.foreign)
}

// present lists the tasks on a GPU: all of them, otherwise with short names, otherwise as
// many as fit and the number of the others. No number is cut.
func (m *app) present(v *api.GPU, width int) string {
	as := plain
	if v.Fault != "" || v.Closed != nil {
		as = bad
	}
	for _, most := range []int{1000, 16, 12, 8, 0} {
		text := cli.Printable(strings.Join(server.Residents(*v, most), ", "))
		if cli.Cells(text) <= width {
			return as.of(m.glyphs.fit(text, width))
		}
	}
	parts := server.Residents(*v, 0)
	for n := len(parts) - 1; n > 0; n-- {
		text := cli.Printable(strings.Join(parts[:n], ", ")) + fmt.Sprintf(" +%d", len(parts)-n)
		if cli.Cells(text) <= width {
			return as.of(m.glyphs.fit(text, width))
		}
	}
	return as.of(m.glyphs.fit(cli.Printable(parts[0]), width)) // words, of a fault or a reservation
}

// window returns the tasks of a list that are on the screen.
func (m *app) window(part int) []*api.Task {
	l := &m.lists[part]
	from := min(l.first, len(l.tasks))
	return l.tasks[from:min(from+l.rows, len(l.tasks))]
}

// heading returns the title of a list's column of names, with the number of tasks.
func (m *app) heading(part int, word string) string {
	l := &m.lists[part]
	if len(l.tasks) < l.all {
		return fmt.Sprintf("%s %d of %d", word, len(l.tasks), l.all)
	}
	return fmt.Sprintf("%s %d", word, l.all)
}

// startedTable lists the started tasks with their progress and their use of resources.
func (m *app) startedTable() []string {
	head := m.heading(started, "RUNNING")
	columns := []column{
		{title: "ID", right: true}, {title: head, least: max(12, cli.Cells(head)), share: 3}, {title: "USER", least: 5, share: 1, worth: 5}, {title: "PHASE"}, {title: "GPU"},
		{title: "MEM", right: true}, {title: "USED", right: true}, {title: "EST", right: true, worth: 4}, {title: "TIME", right: true, worth: 6}, {title: "DONE", right: true}, {title: "LEFT", right: true}, {title: "SLOW", right: true, worth: 7},
		{title: "WHY", least: 20, share: 3, worth: 1, rare: true},
	}
	now := m.time()
	var rows [][]cell
	for _, t := range m.window(started) {
		used, as := "", plain
		if has := m.in[t.ID]; has.used > 0 {
			if used = cli.GiB(has.used); has.grant > 0 && has.used > has.grant {
				as = bad
			}
		}
		done, left := far(t, now.Unix())
		rows = append(rows, []cell{
			{text: strconv.FormatInt(t.ID, 10), as: bold}, {text: t.Name}, {text: t.User}, {text: t.Phase, as: hue(t)}, {text: gpuNumbers(t)},
			{text: tasks.Need(t)}, {text: used, as: as}, {text: estimated(t)}, {text: cli.Age(tasks.TimeOf(t, now))}, {text: done}, {text: left}, {text: tasks.Slowed(t)},
			{text: tasks.Hint(t)},
		})
	}
	return m.listed(started, columns, rows, "nothing runs")
}

// waitingTable lists the queue, with the reason why each task waits, and its expected
// start.
func (m *app) waitingTable() []string {
	head := m.heading(waiting, "WAITING")
	columns := []column{
		{title: "#", right: true, worth: 8}, {title: "ID", right: true}, {title: head, least: max(12, cli.Cells(head)), share: 3}, {title: "USER", least: 5, share: 1, worth: 5}, {title: "PHASE"}, {title: "GPU"},
		{title: "MEM", right: true}, {title: "TIME", right: true, worth: 2}, {title: "PRIO", worth: 1, rare: true}, {title: "START IN", right: true, worth: 7}, {title: "WHY", least: 24, share: 4},
	}
	now := m.time()
	var rows [][]cell
	for _, t := range m.window(waiting) {
		prio := t.Priority
		if prio == "normal" {
			prio = ""
		}
		rows = append(rows, []cell{
			{text: position(t)}, {text: strconv.FormatInt(t.ID, 10), as: bold}, {text: t.Name}, {text: t.User}, {text: t.Phase, as: hue(t)}, {text: tasks.Where(t)},
			{text: tasks.Need(t)}, {text: cli.Age(tasks.TimeOf(t, now))}, {text: prio}, {text: m.expected(t)}, {text: reason(t)},
		})
	}
	return m.listed(waiting, columns, rows, "nothing waits")
}

// position returns the place of a task in the queue, or empty if it is in none.
func position(t *api.Task) string {
	if t.Position == 0 {
		return ""
	}
	return strconv.Itoa(t.Position)
}

// reason returns the most important fact about a task, without its position in the queue.
func reason(t *api.Task) string {
	if t.Position > 0 && t.Suspension == nil {
		return t.Waits
	}
	return tasks.Hint(t)
}

// about returns a line with facts about the task at the cursor for which its row has no
// room.
func (m *app) about() string {
	t := m.tasks[m.task]
	if t == nil {
		return ""
	}
	text := fmt.Sprintf(" %d %s: ", t.ID, t.Name)
	if why := reason(t); why != "" {
		return text + why
	}
	if t.Estimate.Detail != "" {
		return text + "memory: " + t.Estimate.Detail
	}
	return text + t.Phase
}

// listed returns the lines of a list with its titles and the cursor.
func (m *app) listed(part int, columns []column, rows [][]cell, none string) []string {
	head, spans, lines := m.glyphs.grid(columns, rows, m.width-1)
	m.heads[part] = spans
	out := []string{title.of(" " + head)}
	if len(lines) == 0 && m.lists[part].all > 0 {
		none = "none that fits; esc shows all"
	}
	if len(lines) == 0 {
		return append(out, dim.of(m.glyphs.fit("     "+none, m.width)))
	}
	for i, t := range m.window(part) {
		if t.ID == m.task {
			out = append(out, marked.of(">"+ansi.Strip(lines[i])))
		} else {
			out = append(out, " "+lines[i])
		}
	}
	return out
}

// far returns a task's progress as a share or a count, and the remaining time.
func far(t *api.Task, now int64) (done, left string) {
	p := t.Progress
	if p == nil {
		return "", ""
	}
	if p.Share > 0 {
		done = tasks.Share(p)
	}
	if !p.ETA.IsZero() {
		left = cli.Age(secs(max(0, p.ETA.Unix()-now)))
	}
	return done, left
}

// estimated returns the likeliest memory of a task in GiB, or empty if unknown.
func estimated(t *api.Task) string {
	switch e := t.Estimate; {
	case t.Submit.NoGPU || e.WholeGPU:
		return "-"
	case e.Point > 0:
		return cli.GiB(e.Point)
	case e.Memory > 0:
		return cli.GiB(e.Memory)
	}
	return ""
}
