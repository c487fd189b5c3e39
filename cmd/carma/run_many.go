package main

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"carma/configs/taskfile"
	"carma/runner/api"
)

// manyOptions are the flags of run that make several tasks of one request, or
// tie tasks to each other.
type manyOptions struct {
	array    taskfile.Array
	parallel int
	sweep    []string
	after    []string
	group    string
	file     string
	dryRun   bool
	json     bool
}

func (m *manyOptions) flags(f *pflag.FlagSet) {
	f.Var(&parsed[taskfile.Array]{to: &m.array, kind: "range", parse: taskfile.ParseArray}, "array", "one task per index: 1-10, 0-20:5, 1,3,5; %N at the end lets N run at a time")
	f.StringArrayVar(&m.sweep, "sweep", nil, "one task per value of a parameter, `key=v1,v2`; of several, all combinations")
	countFlag(f, &m.parallel, 1, "parallel", "how many of an array or a sweep may run at a time")
	f.StringArrayVar(&m.after, "after", nil, "wait for `task` or group to succeed; TASK:any for its end, TASK:started for its start")
	f.StringVar(&m.group, "group", "", "`name` of the tasks together (default: chosen)")
	f.StringVarP(&m.file, "file", "f", "", "submit the tasks that a `file` describes; - is standard input")
	f.BoolVar(&m.dryRun, "dry-run", false, "print what would be submitted, its memory and where it would run now")
	f.BoolVar(&m.json, "json", false, "with --dry-run: print JSON")
}

// submission is everything that one command line asks for.
func (o *runOptions) submission(in io.Reader, args []string) (api.Submission, error) {
	if o.many.json && !o.many.dryRun {
		return api.Submission{}, usagef("carma inspect prints a task as JSON", "--json is for --dry-run")
	}
	if o.many.file != "" {
		return o.fromFile(in)
	}
	base, err := o.submit(args)
	if err != nil {
		return api.Submission{}, err
	}
	sweep := make([]taskfile.Axis, len(o.many.sweep))
	for i, text := range o.many.sweep {
		if sweep[i], err = taskfile.ParseAxis(text); err != nil {
			return api.Submission{}, usagef("", "--sweep: %v", err)
		}
		if slices.ContainsFunc(sweep[:i], func(a taskfile.Axis) bool { return a.Key == sweep[i].Key }) {
			return api.Submission{}, usagef("give all its values at once", "--sweep: %s comes twice", sweep[i].Key)
		}
	}
	several := len(o.many.array.Indices) > 0 || len(sweep) > 0
	switch {
	case several && base.Name != "":
		return api.Submission{}, usagef("--group names them together", "--name is for one task")
	case !several && o.many.parallel > 0:
		return api.Submission{}, usagef("it is for --array and --sweep", "--parallel limits nothing: there is one task")
	case o.many.parallel > 0 && o.many.array.Parallel > 0:
		return api.Submission{}, usagef("give one of them", "--parallel and %%%d are the same", o.many.array.Parallel)
	}
	for _, text := range o.many.after {
		a, err := taskfile.ParseAfter(text)
		if err != nil {
			return api.Submission{}, usagef("", "--after: %v", err)
		}
		base.After = append(base.After, api.Dependency{Task: a.Task, Condition: a.Condition})
	}
	base.Parallel = max(o.many.parallel, o.many.array.Parallel)
	tasks, err := expand(base, o.many.array, sweep)
	return api.Submission{Group: o.many.group, Tasks: tasks}, err
}

// besideFile are the flags of run that go with -f; all others belong into the
// file.
var besideFile = []string{"file", "group", "detach", "dry-run", "json", "socket", "config", "help"}

func (o *runOptions) fromFile(in io.Reader) (api.Submission, error) {
	var s api.Submission
	var wrong string
	o.set.Visit(func(f *pflag.Flag) {
		if !slices.Contains(besideFile, f.Name) {
			wrong = cmp.Or(wrong, f.Name)
		}
	})
	if wrong != "" {
		return s, usagef("write it into the file", "--%s does not go with -f", wrong)
	}
	folder := "."
	if o.many.file != "-" {
		f, err := os.Open(expandHome(o.many.file))
		if err != nil {
			return s, usagef("", "-f %s: %v", o.many.file, reason(err))
		}
		defer f.Close()
		in, folder = f, filepath.Dir(f.Name())
	}
	name := o.many.file
	if name == "-" {
		name = "standard input"
	}
	file, err := taskfile.Read(name, in)
	if err != nil {
		return s, usagef("", "%v", err)
	}
	s.Group = cmp.Or(o.many.group, file.Group)
	parts := map[string]bool{}
	for i := range file.Tasks {
		parts[file.Tasks[i].Name] = len(file.Tasks) > 1
	}
	for i := range file.Tasks {
		t := &file.Tasks[i]
		base, err := requestOf(t, folder, parts)
		var usage *usageError
		if errors.As(err, &usage) {
			return s, usagef(usage.hint, "%s:%d: %s", name, t.Line, usage.what)
		}
		if err != nil {
			return s, err
		}
		switch {
		case len(file.Tasks) > 1:
			base.Part = t.Name
		case t.Count() == 1:
			base.Name = t.Name
		default:
			s.Group = cmp.Or(s.Group, t.Name)
		}
		tasks, err := expand(base, t.Array, t.Sweep)
		if err != nil {
			return s, err
		}
		s.Tasks = append(s.Tasks, tasks...)
	}
	return s, nil
}

// requestOf is an entry of a task file as a request. Relative paths begin at
// the file's folder; parts are the names in the file.
func requestOf(t *taskfile.Task, folder string, parts map[string]bool) (api.Submit, error) {
	r := api.Submit{
		Image: t.Image, Command: t.Command, Entrypoint: t.Entrypoint, WorkDir: t.WorkDir, ShmSize: t.ShmSize, Labels: t.Labels, Pull: t.Pull,
		GPUs: t.GPUs, Mem: t.Mem, EstModel: t.EstModel, BatchSize: t.BatchSize, Estimator: t.Estimator, Probe: t.Probe, Exclusive: t.Exclusive,
		HostMem: t.HostMem, CPUs: t.CPUs, Pids: int64(t.Pids), Visibility: t.Visibility,
		Priority: t.Priority, Retries: t.Retries, TimeLimit: t.Time, Slot: t.Slot, StopGrace: t.StopGrace, Delay: t.Delay,
		Parallel: max(t.Parallel, t.Array.Parallel),
	}
	below := func(path string) string {
		if path == "" || filepath.IsAbs(path) || path[0] == '~' {
			return path
		}
		return filepath.Join(folder, path)
	}
	var files, mounts []string
	for _, path := range t.EnvFiles {
		files = append(files, below(path))
	}
	for _, v := range t.Volumes {
		source, rest, ok := strings.Cut(v, ":")
		if ok {
			v = below(source) + ":" + rest
		}
		mounts = append(mounts, v)
	}
	var err error
	if r.Env, err = environment(files, t.Env); err != nil {
		return r, err
	}
	if r.Mounts, err = bindMounts(mounts); err != nil {
		return r, err
	}
	for _, a := range t.After {
		d := api.Dependency{Task: a.Task, Condition: a.Condition}
		if parts[a.Task] {
			d.Part, d.Task = a.Task, ""
		}
		r.After = append(r.After, d)
	}
	return r, nil
}

// expand makes the tasks of an array and a sweep: all combinations, the first
// parameter changing slowest and the index fastest. A value reaches a task in
// its environment, as a label, and where its command and its variables have
// {key}.
func expand(base api.Submit, array taskfile.Array, sweep []taskfile.Axis) ([]api.Submit, error) {
	n := max(1, len(array.Indices))
	for _, axis := range sweep {
		if n *= len(axis.Values); n > taskfile.MaxTasks {
			return nil, usagef("", "more than %d tasks, the most of one submission", taskfile.MaxTasks)
		}
		if axis.IsBatch() && base.BatchSize > 0 {
			return nil, usagef("leave one of them out", "the batch size is given and swept as %s", axis.Key)
		}
	}
	tasks := make([]api.Submit, 0, n)
	for i := range n {
		tasks = append(tasks, element(base, array, sweep, i))
	}
	return tasks, nil
}

// element is the i-th task of an array and a sweep.
func element(base api.Submit, array taskfile.Array, sweep []taskfile.Axis, i int) api.Submit {
	t := base
	var known []string // {key}, value, ...
	var env []string
	if indices := array.Indices; len(indices) > 0 {
		index := indices[i%len(indices)]
		i /= len(indices)
		t.Array = &api.ArrayElement{Index: index, Count: len(indices), Min: slices.Min(indices), Max: slices.Max(indices)}
		known = append(known, "{index}", strconv.Itoa(index))
	}
	t.Labels = maps.Clone(base.Labels)
	for _, axis := range slices.Backward(sweep) {
		value := axis.Values[i%len(axis.Values)]
		i /= len(axis.Values)
		known = append(known, "{"+axis.Key+"}", value)
		env = append(env, axis.Variable()+"="+value)
		if t.Labels == nil {
			t.Labels = map[string]string{}
		}
		t.Labels[axis.Key] = value
		if axis.IsBatch() {
			t.BatchSize, _ = strconv.Atoi(value) // checked with the values
		}
	}
	replace := strings.NewReplacer(known...)
	t.Command, t.Entrypoint, t.Env = replaced(replace, base.Command), replaced(replace, base.Entrypoint), replaced(replace, base.Env)
	slices.Reverse(env)
	t.Env = append(env, t.Env...)
	return t
}

func replaced(r *strings.Replacer, words []string) []string {
	if words == nil {
		return nil
	}
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = r.Replace(w)
	}
	return out
}
