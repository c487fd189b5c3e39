package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"carma/mapper/model"
	"carma/mapper/sim"
)

// section describes one trace on the page.
type section struct {
	ID                 string
	Trace              string
	Description        string
	Outcome            string
	Facts              []string
	Header             []string
	Rows               []row
	RatioTo            string
	Policies           []legendEntry
	Alike              string
	Runs               []runView
	Kinds              []legendEntry
	OOMs, Stopped, Off bool        // such attempts are in the charts
	Charts             bool        // the section has timelines
	Data               template.JS // for the script
}

// runView describes one policy on the page.
type runView struct {
	ID     string
	Policy legendEntry
	Gist   string
	Open   bool
	Charts bool
	Failed []string
	Users  []userRow
}

// userRow is a user's row, as texts.
type userRow struct{ Name, Tasks, GPUTime, Energy, Share string }

// legendEntry is a name and the class of its colour.
type legendEntry struct{ Name, Class string }

// shownFailures is the largest number of failed tasks that are listed. openRuns is the
// largest number of policies for which all parts are open.
const (
	shownFailures = 20
	openRuns      = 4
)

// runID returns the id of a policy's part of the page.
func runID(section string, n int) string { return fmt.Sprintf("%sp%d", section, n+1) }

func newSection(d *Data, n int) (section, error) {
	s := section{ID: fmt.Sprintf("t%d", n), Trace: clean(d.Trace), Description: clean(d.Description), Facts: facts(d)}
	if len(d.Runs) == 0 {
		return s, nil
	}
	first := d.reference()
	s.RatioTo, s.Outcome, s.Alike = clean(first.Policy), d.outcome(), alike(d.Runs)
	s.Header, s.Rows = summary(d.Runs, first, s.ID)
	colours, kinds := palette(d.Runs), rankKinds(d.Runs)
	s.Kinds = kinds.legend
	for i := range d.Runs {
		s.Policies = append(s.Policies, legendEntry{clean(d.Runs[i].Policy), colours[i]})
		r := newRunView(&d.Runs[i], colours[i])
		r.ID, r.Open = runID(s.ID, i), i < openRuns || len(d.Runs) == 1
		s.Runs, s.Charts = append(s.Runs, r), s.Charts || r.Charts
		if line := d.Runs[i].Timeline; line != nil {
			had := func(o sim.Outcome) bool {
				return slices.ContainsFunc(line.Spans, func(s sim.Span) bool { return s.Outcome == o })
			}
			s.OOMs, s.Stopped, s.Off = s.OOMs || had(sim.OutcomeOOM), s.Stopped || had(sim.OutcomeOther), s.Off || had(sim.OutcomeAway)
		}
	}
	text, err := newSectionData(d, s.ID, colours, kinds).text()
	s.Data = template.JS(text)
	return s, err
}

func newRunView(r *Run, class string) runView {
	m := &r.Metrics
	v := runView{Policy: legendEntry{clean(r.Policy), class}, Failed: failures(r.Tasks), Users: users(r)}
	v.Gist = fmt.Sprintf("makespan %s, mean JCT %s, %s ran out of GPU memory", Span(m.Makespan), Span(m.MeanJCT), count(m.OOMs, "attempt", "attempts", "no attempt"))
	v.Charts = r.Timeline != nil && len(r.Timeline.GPUs) > 0
	return v
}

// facts returns the conditions of a replay, each as a short phrase.
func facts(d *Data) []string {
	var out []string
	if len(d.Runs) > 0 {
		out = append(out, fmt.Sprintf("%d tasks", d.Runs[0].Metrics.Tasks))
	}
	for i := 0; i < len(d.GPUs); {
		n := i
		for n < len(d.GPUs) && d.GPUs[n].Model == d.GPUs[i].Model && d.GPUs[n].Memory == d.GPUs[i].Memory {
			n++
		}
		out = append(out, fmt.Sprintf("%d × %s with %.4g GiB", n-i, clean(d.GPUs[i].Model), d.GPUs[i].Memory.GiB()))
		i = n
	}
	if d.Server != "" {
		out = append(out, "server "+clean(d.Server))
	}
	for _, f := range d.Facts {
		out = append(out, clean(f))
	}
	if len(d.Runs) > 0 && d.Runs[0].Metrics.LowerBound > 0 {
		out = append(out, "no schedule is shorter than "+Span(d.Runs[0].Metrics.LowerBound))
	}
	return out
}

// alike lists the policies under which every task had the same times as under an earlier
// policy, so that their lines cover each other.
func alike(runs []Run) string {
	var notes []string
	for i := range runs {
		for j := range i {
			if slices.EqualFunc(runs[i].Tasks, runs[j].Tasks, func(a, b Task) bool { return a.Record.Lifetimes() == b.Record.Lifetimes() }) {
				notes = append(notes, fmt.Sprintf("%s as under %s", clean(runs[i].Policy), clean(runs[j].Policy)))
				break
			}
		}
	}
	if len(notes) == 0 {
		return ""
	}
	return "Every task has the same times under " + strings.Join(notes, ", and under ") + "."
}

// users returns the rows of the table of users, with a row for energy that belongs to no
// task. It returns none if there is only one user.
func users(r *Run) []userRow {
	if len(r.Users) < 2 {
		return nil
	}
	line := func(name string, tasks, time string, j float64) userRow {
		return userRow{name, tasks, time, energy(j), fmt.Sprintf("%.1f %%", 100*j/max(1, r.Metrics.EnergyJ))}
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
		if t.Phase == model.Succeeded {
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
