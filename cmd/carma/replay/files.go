package replay

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/report"
	"carma/configs/workloads"
	"carma/mapper/sim"
	"carma/mapper/sim/study"
)

// replayFiles contains the files that a replay in virtual time writes in addition to its
// table.
type replayFiles struct {
	flags                  *pflag.FlagSet
	html, csv, chrome, svg string // empty if not requested
}

// fileFlags lists the flags that name the files to write.
var fileFlags = []string{"html", "csv", "chrome-trace", "svg"}

// policyMark in the name of --svg is replaced by the name of each policy.
const policyMark = "{policy}"

func addFileFlags(flags *pflag.FlagSet) *replayFiles {
	f := &replayFiles{flags: flags}
	flags.StringVar(&f.html, "html", "", "write a report with charts to this `file`, one for all traces")
	flags.StringVar(&f.csv, "csv", "", "write the times of every task to this `file`")
	flags.StringVar(&f.chrome, "chrome-trace", "", "write what ran where to this `file`, for Perfetto")
	flags.StringVar(&f.svg, "svg", "", "write a picture of what ran where to this `file`; with "+policyMark+" in its name, one for each policy")
	return f
}

// check refuses files that could not be written, before a long replay.
func (f *replayFiles) check(inputs []string, traces int) error {
	if f.flags.Changed("svg") && traces > 1 {
		return cli.Usagef("name one trace, or write --html, which takes several", "--svg is a picture of one trace, not of %d", traces)
	}
	paths := map[string]*string{"html": &f.html, "csv": &f.csv, "chrome-trace": &f.chrome, "svg": &f.svg}
	taken := map[string]string{}
	for _, name := range fileFlags {
		path := paths[name]
		if !f.flags.Changed(name) {
			continue
		}
		if *path == "" {
			return cli.Usagef("write for example --"+name+" replay."+map[string]string{"html": "html", "csv": "csv", "chrome-trace": "json", "svg": "svg"}[name], "--%s: the file has no name", name)
		}
		if err := cli.Writable(path, inputs); err != nil {
			return cli.Usagef("", "--%s: %v", name, err)
		}
		if other := taken[*path]; other != "" {
			return cli.Usagef("name two files", "--%s and --%s: both are %s", other, name, *path)
		}
		taken[*path] = name
	}
	return nil
}

// charts reports whether a timeline is needed.
func (f *replayFiles) charts() bool {
	return f != nil && (f.html != "" || f.chrome != "" || f.svg != "")
}

// write writes the requested files.
func (f *replayFiles) write(v *virtualReplay) error {
	if f == nil {
		return nil
	}
	var data []report.Data
	if f.charts() {
		var err error
		if data, err = v.report(); err != nil {
			return err
		}
	}
	if f.chrome != "" {
		if err := cli.ReplaceFile(f.chrome, func(w io.Writer) error { return report.WriteChromeTrace(w, data) }); err != nil {
			return fmt.Errorf("write the trace: %w", err)
		}
	}
	if f.html != "" {
		if err := cli.ReplaceFile(f.html, func(w io.Writer) error { return report.Write(w, data) }); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
	}
	if f.svg != "" {
		if err := f.pictures(data); err != nil {
			return err
		}
	}
	if f.csv != "" {
		if err := cli.ReplaceFile(f.csv, func(w io.Writer) error { return v.writeTasks(w) }); err != nil {
			return fmt.Errorf("write tasks: %w", err)
		}
	}
	return nil
}

// pictures writes one picture of all policies, or one for each, with the same time axis.
func (f *replayFiles) pictures(all []report.Data) error {
	for _, d := range all {
		shown := map[string][]report.Run{f.svg: d.Runs}
		if strings.Contains(f.svg, policyMark) {
			shown = map[string][]report.Run{}
			for _, r := range d.Runs {
				name := strings.ReplaceAll(f.svg, policyMark, strings.NewReplacer("/", "-", ":", "-").Replace(r.Policy))
				shown[name] = []report.Run{r}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(shown)) {
			if err := cli.ReplaceFile(name, func(w io.Writer) error { return report.WritePicture(w, d, shown[name]) }); err != nil {
				return fmt.Errorf("write the picture: %w", err)
			}
		}
	}
	return nil
}

// report returns the data of the HTML report.
func (v *virtualReplay) report() ([]report.Data, error) {
	var out []report.Data
	for _, p := range v.parts {
		for i := range p.all {
			d, err := p.report(&p.all[i])
			if err != nil {
				return nil, err
			}
			out = append(out, d)
		}
	}
	return out, nil
}

func (v *part) report(r *study.Replayed) (report.Data, error) {
	d := report.Data{
		Trace: r.Trace.Name, Description: r.Trace.Description, Server: v.Server.Name,
		Facts: v.facts(),
	}
	for _, g := range v.Server.GPUs {
		d.GPUs = append(d.GPUs, report.GPU{Index: g.Index, Model: g.Model, Memory: g.Memory})
	}
	for j := range r.Outcomes {
		run, err := reportRun(r, &r.Outcomes[j])
		if err != nil {
			return d, err
		}
		d.Runs = append(d.Runs, run)
	}
	d.Reference = &report.Run{Policy: r.Reference.Policy, Metrics: r.Reference.Result.Metrics}
	return d, nil
}

// facts returns the conditions of all rows, including default conditions.
func (v *part) facts() []string {
	c := v.Conditions()
	var facts []string
	if c.Know == study.KnowAll {
		facts = append(facts, "memory, activity and run times of the tasks known before")
	}
	if c.Sharing == sim.MPS {
		facts = append(facts, "tasks share a GPU by MPS")
	}
	facts = append(facts, c.Words()...)
	if text := v.estimatorText(); text != "" {
		facts = append(facts, strings.TrimPrefix(text, ", "))
	}
	return append(facts, "start-up "+v.StartUp.String())
}

func reportRun(r *study.Replayed, o *study.Outcome) (report.Run, error) {
	run := report.Run{Policy: o.Policy, Metrics: o.Result.Metrics, Timeline: o.Result.Timeline}
	for _, u := range o.Users() {
		run.Users = append(run.Users, report.User{Name: u.User, Tasks: u.Tasks, GPUTime: u.GPUTime, EnergyJ: u.EnergyJ})
	}
	models := map[string]string{} // only for look-up
	for i := range o.Result.Tasks {
		t := &o.Result.Tasks[i]
		workload := t.Task.Name
		if _, known := models[workload]; !known {
			p, err := workloads.Find(workload)
			if err != nil {
				return run, err // the trace was validated
			}
			models[workload] = p.Model
		}
		name := workload
		if own := r.Trace.Tasks[i].Name; own != "" {
			name += " (" + own + ")"
		}
		run.Tasks = append(run.Tasks, report.Task{
			ID: t.ID, Name: name, Kind: models[workload], Phase: t.Phase, Reason: t.Reason, Record: t.Record, EnergyJ: t.EnergyJ,
		})
	}
	return run, nil
}

// taskColumns is the header of the CSV file. Times are seconds since the start of the
// trace, GPUs belong to the last attempt.
var taskColumns = []string{
	"trace", "policy", "task", "name", "workload", "user", "gpus", "submitted_s", "phase", "attempts", "ooms",
	"waiting_s", "execution_s", "lost_s", "jct_s", "slowdown", "gpu_indices", "energy_j",
	"sharing", "coarse", "know", "repeats", "truth", "suspend", "urgent", "drain", "priority", "suspends", "away_s",
}

// writeTasks writes a line for each task under each policy.
func (v *virtualReplay) writeTasks(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(taskColumns); err != nil {
		return err
	}
	for _, p := range v.parts {
		c := p.Conditions()
		conditions := []string{c.Sharing.String(), strconv.FormatBool(c.Coarse), string(c.Know), strconv.FormatBool(!c.Distinct), c.Truth.String(), c.SuspendText(), strconv.FormatFloat(c.Urgent, 'g', -1, 64), c.DrainText()}
		for i := range p.all {
			for j := range p.all[i].Outcomes {
				for k := range p.all[i].Outcomes[j].Result.Tasks {
					line := append(csvLine(&p.all[i], &p.all[i].Outcomes[j], k), conditions...)
					if err := out.Write(append(line, csvAway(&p.all[i].Outcomes[j].Result.Tasks[k])...)); err != nil {
						return err
					}
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

func csvLine(r *study.Replayed, o *study.Outcome, k int) []string {
	t := &o.Result.Tasks[k]
	l, ooms := t.Record.Lifetimes(), 0
	for _, a := range t.Record.Attempts {
		if a.OOM {
			ooms++
		}
	}
	gpus := make([]string, len(t.GPUs))
	for i, index := range slices.Sorted(slices.Values(t.GPUs)) {
		gpus[i] = strconv.Itoa(index)
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', 3, 64) }
	return []string{
		r.Trace.Name, o.Policy, t.ID.String(), cmp.Or(r.Trace.Tasks[k].Name, t.Task.Name), t.Task.Name, t.Task.User, strconv.Itoa(t.Task.GPUs),
		number(t.Task.At.Seconds()), string(t.Phase), strconv.Itoa(len(t.Record.Attempts)), strconv.Itoa(ooms),
		number(l.Waiting.Seconds()), number(l.Execution.Seconds()), number(l.Lost.Seconds()), number(l.JCT.Seconds()),
		number(t.Record.Slowdown()), strings.Join(gpus, " "), number(t.EnergyJ),
	}
}

// csvAway returns the priority of a task, and the number and time of its suspensions.
func csvAway(t *sim.TaskResult) []string {
	return []string{t.Task.Priority.String(), strconv.Itoa(len(t.Record.Stretches)), strconv.FormatFloat(t.Record.Lifetimes().Away.Seconds(), 'f', 3, 64)}
}
