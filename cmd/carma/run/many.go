package run

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/envs"
	"carma/cmd/carma/pick"
	"carma/cmd/carma/submit"
	"carma/cmd/carma/taskfile"
	"carma/runner/api"
)

// manyOptions contains the flags of run that make several tasks from one request, or tie
// tasks to each other.
type manyOptions struct {
	array  taskfile.Array
	sweep  []string
	after  []string
	group  string
	file   string
	dryRun bool
	json   bool
}

func (m *manyOptions) flags(f *pflag.FlagSet) {
	f.Var(&cli.Parsed[taskfile.Array]{To: &m.array, Kind: "range", Parse: taskfile.ParseArray}, "array", "one task per index: 1-10, 0-20:5, 1,3,5; %N at the end lets N run at a time")
	f.StringArrayVar(&m.sweep, "sweep", nil, "one task per value of a parameter, `key=v1,v2`; of several, all combinations")
	f.StringArrayVar(&m.after, "after", nil, "wait for `task` or group to succeed; TASK:any for its end, TASK:started for its start")
	f.StringVar(&m.group, "group", "", "`name` of the tasks together (default: chosen)")
	f.StringVarP(&m.file, "file", "f", "", "submit the tasks that a `file` describes; - is standard input")
	f.BoolVar(&m.dryRun, "dry-run", false, "print what would be submitted, its memory and where it would run now")
	f.BoolVar(&m.json, "json", false, "with --dry-run: print JSON")
}

// resolve replaces short forms by task numbers: @, patterns and beginnings of names.
func resolve(ctx context.Context, client *api.Client, s *api.Submission) error {
	for i := range s.Tasks {
		var after []api.Dependency
		for _, d := range s.Tasks[i].After {
			refs := []string{d.Task}
			if d.Task != "" {
				var err error
				if refs, err = pick.Refs(ctx, client, refs, true); err != nil {
					return err
				}
			}
			for _, ref := range refs {
				d.Task = ref
				after = append(after, d)
			}
		}
		s.Tasks[i].After = after
	}
	return nil
}

// submission returns everything that one command line requests.
func (o *options) submission(in io.Reader, args []string) (api.Submission, error) {
	if o.many.json && !o.many.dryRun {
		return api.Submission{}, cli.Usagef("carma inspect prints a task as JSON", "--json is for --dry-run")
	}
	if o.many.file != "" {
		return o.fromFile(in)
	}
	base, err := o.submit(args)
	if err != nil {
		return api.Submission{}, err
	}
	t := taskfile.Task{Submit: base, Array: o.many.array}
	for _, text := range o.many.sweep {
		axis, err := taskfile.ParseAxis(text)
		if err != nil {
			return api.Submission{}, cli.Usagef("", "--sweep: %v", err)
		}
		if slices.ContainsFunc(t.Sweep, func(a taskfile.Axis) bool { return a.Key == axis.Key }) {
			return api.Submission{}, cli.Usagef("give all its values at once", "--sweep: %s comes twice", axis.Key)
		}
		t.Sweep = append(t.Sweep, axis)
	}
	if base.Name != "" && (len(t.Array.Indices) > 0 || len(t.Sweep) > 0) {
		return api.Submission{}, cli.Usagef("--group names them together", "--name is for one task")
	}
	for _, text := range o.many.after {
		d, err := taskfile.ParseAfter(text)
		if err != nil {
			return api.Submission{}, cli.Usagef("", "--after: %v", err)
		}
		t.Submit.After = append(t.Submit.After, d)
	}
	if wrong := t.Check(); wrong != nil {
		return api.Submission{}, cli.Usagef("", "%v", wrong)
	}
	tasks, err := t.Expand()
	if err != nil {
		return api.Submission{}, cli.Usagef("", "%v", err)
	}
	o.notes = append(o.notes, t.Unused()...)
	o.notes = append(o.notes, submit.Commands(tasks, ".")...)
	return api.Submission{Group: o.many.group, Tasks: tasks}, nil
}

// besideFile lists the flags of run that may be combined with -f; all others belong in
// the file.
var besideFile = []string{"file", "group", "detach", "dry-run", "json", "socket", "context", "config", "help"}

func (o *options) fromFile(in io.Reader) (api.Submission, error) {
	var s api.Submission
	var wrong string
	o.set.Visit(func(f *pflag.Flag) {
		if !slices.Contains(besideFile, f.Name) {
			wrong = cmp.Or(wrong, f.Name)
		}
	})
	if wrong != "" {
		return s, cli.Usagef("write it into the file", "--%s does not go with -f", wrong)
	}
	folder := "."
	if o.many.file != "-" {
		f, err := os.Open(cli.ExpandHome(o.many.file))
		if err != nil {
			return s, cli.Usagef("", "-f %s: %v", o.many.file, cli.Reason(err))
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
		return s, cli.Usagef("", "%v", err)
	}
	s.Group = cmp.Or(o.many.group, file.Group)
	for i := range file.Tasks {
		t := &file.Tasks[i]
		err := onThisHost(t, folder)
		if err == nil {
			var notes []string
			notes, err = submit.Model(&t.Submit, folder)
			o.notes = append(o.notes, notes...)
		}
		var usage *cli.UsageError
		if errors.As(err, &usage) {
			return s, cli.Usagef(usage.Hint, "%s:%d: %s", name, t.Line, usage.What)
		}
		if err != nil {
			return s, err
		}
		if len(file.Tasks) == 1 && t.Count() > 1 {
			s.Group = cmp.Or(s.Group, t.Submit.Name)
			t.Submit.Name = ""
		}
		tasks, err := t.Expand()
		if err != nil {
			return s, cli.Usagef("", "%s:%d: %v", name, t.Line, err)
		}
		o.notes = append(o.notes, t.Unused()...)
		o.notes = append(o.notes, submit.Commands(tasks, folder)...)
		s.Tasks = append(s.Tasks, tasks...)
	}
	return s, nil
}

// onThisHost reads the files that an entry of a task file names: environment files, and
// folders to mount. Relative paths start at the file's folder.
func onThisHost(t *taskfile.Task, folder string) (err error) {
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
	if t.Submit.Env, err = cli.Environment(files, t.Submit.Env); err != nil {
		return err
	}
	if t.Submit.Mounts, err = cli.Mounts(mounts); err != nil {
		return err
	}
	return envs.Settle(&t.Submit, folder)
}
