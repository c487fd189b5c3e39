package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"carma/cmd/carma/report"
	"carma/configs/workloads"
	"carma/mapper/sim/study"
)

// replayFiles are what a replay in virtual time leaves besides its table.
type replayFiles struct {
	flags     *pflag.FlagSet
	html, csv string // empty: none
}

// fileFlags are the names of the flags.
var fileFlags = []string{"html", "csv"}

func addFileFlags(flags *pflag.FlagSet) *replayFiles {
	f := &replayFiles{flags: flags}
	flags.StringVar(&f.html, "html", "", "write a report with charts to this `file`, one for all traces")
	flags.StringVar(&f.csv, "csv", "", "write the times of every task to this `file`")
	return f
}

// check refuses, before a long replay, what could not be written after it.
func (f *replayFiles) check(inputs []string) error {
	paths := map[string]*string{"html": &f.html, "csv": &f.csv}
	for _, name := range fileFlags {
		path := paths[name]
		if !f.flags.Changed(name) {
			continue
		}
		if *path == "" {
			return usagef("write for example --"+name+" replay."+name, "--%s: the file has no name", name)
		}
		if err := writable(path, inputs); err != nil {
			return usagef("", "--%s: %v", name, err)
		}
	}
	if f.html != "" && f.html == f.csv {
		return usagef("name two files", "--html and --csv: both are %s", f.html)
	}
	return nil
}

// writable finds out whether a file can be put at a path, which becomes that
// of the file itself where it is a link.
func writable(path *string, inputs []string) error {
	name := *path
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	name, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	there, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case there.IsDir():
		return fmt.Errorf("%s is a folder", *path)
	case !there.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file", *path)
	}
	for _, input := range inputs {
		if in, err := os.Stat(input); err == nil && os.SameFile(in, there) {
			return fmt.Errorf("%s is the trace itself", *path)
		}
	}
	probe, err := os.CreateTemp(filepath.Dir(name), ".carma-*")
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", *path, errors.Unwrap(err))
	}
	*path = name
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// charts tells whether a timeline is needed.
func (f *replayFiles) charts() bool { return f != nil && f.html != "" }

// write leaves the files that were asked for.
func (f *replayFiles) write(v *virtualReplay, all []study.Replayed) error {
	if f == nil {
		return nil
	}
	if f.html != "" {
		data, err := v.report(all)
		if err != nil {
			return err
		}
		if err := replaceFile(f.html, func(w io.Writer) error { return report.Write(w, data) }); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
	}
	if f.csv != "" {
		if err := replaceFile(f.csv, func(w io.Writer) error { return writeTasks(w, all) }); err != nil {
			return fmt.Errorf("write tasks: %w", err)
		}
	}
	return nil
}

// replaceFile puts all of what is written at a path, or leaves what was there.
func replaceFile(path string, write func(io.Writer) error) error {
	f, err := partFile(path)
	if err != nil {
		return err
	}
	part := f.Name()
	if err = errors.Join(write(f), f.Close()); err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}

// partFile is a new file beside a path. Unlike those of os.CreateTemp it is
// for whom the umask says.
func partFile(path string) (f *os.File, err error) {
	for n := range 100 {
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.part", filepath.Base(path), n))
		f, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return f, err
}

// report is the data of the HTML report.
func (v *virtualReplay) report(all []study.Replayed) ([]report.Data, error) {
	out := make([]report.Data, len(all))
	for i := range all {
		r := &all[i]
		d := report.Data{
			Trace: r.Trace.Name, Description: r.Trace.Description, Server: v.Server.Name,
			Facts: []string{"start-up " + v.StartUp.String()},
		}
		if text := v.estimatorText(); text != "" {
			d.Facts = append(d.Facts, strings.TrimPrefix(text, ", "))
		}
		for _, g := range v.Server.GPUs {
			d.GPUs = append(d.GPUs, report.GPU{Index: g.Index, Model: g.Model, Memory: g.Memory})
		}
		for j := range r.Outcomes {
			run, err := reportRun(r, &r.Outcomes[j])
			if err != nil {
				return nil, err
			}
			d.Runs = append(d.Runs, run)
		}
		out[i] = d
	}
	return out, nil
}

func reportRun(r *study.Replayed, o *study.Outcome) (report.Run, error) {
	run := report.Run{Policy: o.Policy, Metrics: o.Result.Metrics, Timeline: o.Result.Timeline}
	models := map[string]string{} // look-up only
	for i := range o.Result.Tasks {
		t := &o.Result.Tasks[i]
		workload := t.Task.Name
		if _, known := models[workload]; !known {
			p, err := workloads.Find(workload)
			if err != nil {
				return run, err // the trace was checked
			}
			models[workload] = p.Model
		}
		name := workload
		if own := r.Trace.Tasks[i].Name; own != "" {
			name += " (" + own + ")"
		}
		run.Tasks = append(run.Tasks, report.Task{
			ID: t.ID, Name: name, Kind: models[workload], Phase: t.Phase, Reason: t.Reason, Record: t.Record,
		})
	}
	return run, nil
}

// taskColumns head the CSV file. Times are seconds since the start of the
// trace, GPUs those of the last attempt.
var taskColumns = []string{
	"trace", "policy", "task", "name", "workload", "user", "gpus", "submitted_s", "phase", "attempts", "ooms",
	"waiting_s", "execution_s", "lost_s", "jct_s", "slowdown", "gpu_indices",
}

// writeTasks writes a line for each task under each policy.
func writeTasks(w io.Writer, all []study.Replayed) error {
	out := csv.NewWriter(w)
	if err := out.Write(taskColumns); err != nil {
		return err
	}
	for i := range all {
		for j := range all[i].Outcomes {
			for k := range all[i].Outcomes[j].Result.Tasks {
				if err := out.Write(csvLine(&all[i], &all[i].Outcomes[j], k)); err != nil {
					return err
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
		number(t.Record.Slowdown()), strings.Join(gpus, " "),
	}
}
