package tasks

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"carma/cmd/carma/cli"
	"carma/internal/suggest"
	"carma/runner/api"
)

// column is a column that ps can show.
type column struct {
	cli.Column
	cell func(r *row, now time.Time) string
}

// columns is in the order of the help text and of the widest table.
var columns = []column{
	{cli.Column{Title: "ID", Right: true}, func(r *row, _ time.Time) string { return r.ids() }},
	{cli.Column{Title: "NAME", Least: 8, Share: 2}, func(r *row, _ time.Time) string { return r.name() }},
	{cli.Column{Title: "USER", Least: 5, Share: 1}, func(r *row, _ time.Time) string { return r.User }},
	{cli.Column{Title: "GROUP", Least: 5, Share: 1}, func(r *row, _ time.Time) string { return r.Group }},
	{cli.Column{Title: "PRIO"}, func(r *row, _ time.Time) string { return r.Priority }},
	{cli.Column{Title: "PHASE"}, func(r *row, _ time.Time) string { return r.Phase }},
	{cli.Column{Title: "GPU", Least: 3, Share: 1}, func(r *row, _ time.Time) string { return Where(r.Task) }},
	{cli.Column{Title: "MEM", Right: true}, func(r *row, _ time.Time) string { return Need(r.Task) }},
	{cli.Column{Title: "TIME", Right: true}, func(r *row, now time.Time) string { return cli.Age(TimeOf(r.Task, now)) }},
	{cli.Column{Title: "SUBMITTED"}, func(r *row, _ time.Time) string { return clock(r.Submitted) }},
	{cli.Column{Title: "START"}, func(r *row, _ time.Time) string { return clock(r.Started) }},
	{cli.Column{Title: "END"}, func(r *row, _ time.Time) string { return clock(r.Ended) }},
	{cli.Column{Title: "CODE", Right: true}, func(r *row, _ time.Time) string { return code(r.Task) }},
	{cli.Column{Title: "PROGRESS", Least: 4, Share: 4}, func(r *row, now time.Time) string { return Far(r.Task, now) }},
	{cli.Column{Title: "SLOW", Right: true}, func(r *row, _ time.Time) string { return Slowed(r.Task) }},
	{cli.Column{Title: "ENERGY", Right: true}, func(r *row, _ time.Time) string { return spent(r.Task) }},
	{cli.Column{Title: "AWAY", Right: true}, func(r *row, _ time.Time) string { return away(r.Task) }},
	{cli.Column{Title: "HOST", Right: true}, func(r *row, _ time.Time) string { return inHost(r.Task) }},
	{cli.Column{Title: "IMAGE", Least: 8, Share: 2}, func(r *row, _ time.Time) string { return r.Image }},
	{cli.Column{Title: "COMMAND", Least: 10, Share: 3}, func(r *row, _ time.Time) string { return command(r.Task) }},
	{cli.Column{Title: "LABELS", Least: 8, Share: 1}, func(r *row, _ time.Time) string { return labelled(r.Task) }},
	{cli.Column{Title: "WHY", Least: 16, Share: 3}, func(r *row, _ time.Time) string { return r.why() }},
}

// columnNamed finds a column by its title, ignoring case.
func columnNamed(title string) (column, error) {
	var titles []string
	for _, c := range columns {
		if strings.EqualFold(c.Title, title) {
			return c, nil
		}
		titles = append(titles, c.Title)
	}
	return column{}, suggest.OneOf(strings.ToUpper(title), titles)
}

// shown returns the columns of a table without a format: the permanent ones, and columns
// that are not empty. A width of 0 means no limit.
func shown(rows []row, now time.Time, width int) (some []column) {
	broad := width == 0 || width >= wide
	anyTask := func(fits func(*api.Task) bool) bool {
		return slices.ContainsFunc(rows, func(r row) bool { return fits(r.Task) })
	}
	for _, c := range columns {
		show := false
		switch c.Title {
		case "ID", "NAME", "USER", "PHASE", "GPU", "MEM", "TIME", "WHY":
			show = true
		case "PRIO":
			show = anyTask(func(t *api.Task) bool { return t.Priority != "" && t.Priority != "normal" })
		case "PROGRESS":
			show = anyTask(func(t *api.Task) bool { return Far(t, now) != "" })
		case "SLOW":
			show = broad && anyTask(func(t *api.Task) bool { return Slowed(t) != "" })
		case "END":
			show = broad && anyTask(func(t *api.Task) bool { return !t.Ended.IsZero() })
		case "AWAY":
			show = broad && anyTask(func(t *api.Task) bool { return away(t) != "" })
		case "HOST":
			show = broad && anyTask(func(t *api.Task) bool { return inHost(t) != "" })
		case "ENERGY":
			show = broad && anyTask(func(t *api.Task) bool { return t.Finished() && t.EnergyJ > 0 })
		}
		if show {
			some = append(some, c)
		}
	}
	return some
}

// table lays out rows in columns.
func table(some []column, rows []row, now time.Time) *cli.Table {
	t := &cli.Table{}
	for _, c := range some {
		t.Columns = append(t.Columns, c.Column)
	}
	for i := range rows {
		cells := make([]string, len(some))
		for j, c := range some {
			cells[j] = c.cell(&rows[i], now)
		}
		t.Add(cells...)
	}
	return t
}

// clock formats a time to the minute, in the user's time zone.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04")
}

func code(t *api.Task) string {
	if t.ExitCode == nil {
		return ""
	}
	return strconv.Itoa(*t.ExitCode)
}

// spent returns the energy of an ended task.
func spent(t *api.Task) string {
	if !t.Finished() {
		return ""
	}
	return used(t.EnergyJ)
}

// away returns the time for which a task was suspended, in all its attempts up to now, or
// empty if it was not.
func away(t *api.Task) string {
	sum := time.Duration(0)
	for i := range t.Attempts {
		sum += t.Attempts[i].Suspended
	}
	if sum == 0 {
		return ""
	}
	return cli.Age(sum)
}

// inHost returns the host memory in GiB that contains a suspended task's GPU memory, or
// "" if there is none.
func inHost(t *api.Task) string {
	if t.Suspension == nil {
		return ""
	}
	return cli.GiB(t.Suspension.Host)
}

func command(t *api.Task) string {
	return strings.Join(slices.Concat(t.Submit.Entrypoint, t.Submit.Command), " ")
}

// labelled returns the labels as key=value, sorted.
func labelled(t *api.Task) string {
	var all []string
	for k, v := range t.Submit.Labels {
		all = append(all, k+"="+v)
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}
