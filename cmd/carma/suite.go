package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/cmd/carma/suite"
	"carma/configs/nearest"
	"carma/configs/suites"
	"carma/configs/taskfile"
	"carma/runner/api"
)

func (a *app) suiteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "suite COMMAND",
		Short: "Run the services of a Compose file as tasks",
		Long: `Run the services of a Compose file as tasks of one group: they get their GPUs
from carma, wait for what they depend on, and are run again when they run out of
GPU memory. FILE is a Compose file, or the name of a suite that comes with
carma: ` + strings.Join(suites.Names(), ", ") + `. docs/suites.md lists the keys that carma honours.`,
		Example: `  carma suite up compose.yaml
  carma suite up -d --profile nightly compose.yaml; carma suite logs -f compose.yaml
  carma suite up --junit report.xml mixed`,
		Args: cobra.ArbitraryArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(cmd, args[0])
	}
	cmd.AddCommand(a.suiteUpCommand(), a.suitePsCommand(), a.suiteLogsCommand(), a.suiteWaitCommand(), a.suiteDownCommand())
	for _, c := range cmd.Commands() {
		c.DisableFlagsInUseLine = true
	}
	return cmd
}

// suiteFlags name a suite and what goes into its file.
type suiteFlags struct {
	name               string
	envFiles, profiles []string
}

func (s *suiteFlags) flags(f *pflag.FlagSet) {
	f.StringVarP(&s.name, "project-name", "p", "", "`name` of the suite (default: the file's, else its folder's)")
	f.StringArrayVar(&s.envFiles, "env-file", nil, "read the file's variables from this `file` (default: .env beside it)")
}

// open reads the Compose file that is named; - is standard input.
func (s *suiteFlags) open(in io.Reader, ref string) (file string, content []byte, o suite.Options, err error) {
	o = suite.Options{Name: s.name, Profiles: s.profiles, Environ: os.Environ(), UID: os.Getuid(), GID: os.Getgid()}
	for _, path := range s.envFiles {
		o.EnvFiles = append(o.EnvFiles, expandHome(path))
	}
	if o.Folder, err = filepath.Abs("."); err != nil {
		return "", nil, o, err
	}
	if profiles := os.Getenv("COMPOSE_PROFILES"); len(s.profiles) == 0 && profiles != "" {
		o.Profiles = strings.Split(profiles, ",")
	}
	file = ref
	switch f, err := os.Open(expandHome(ref)); {
	case ref == "-":
		file = "standard input"
	case err == nil:
		defer f.Close()
		in, o.Folder = f, filepath.Dir(absolute(f.Name()))
	default:
		shipped, name, ok := suites.Content(ref)
		if !ok {
			hint := "suites that come with carma: " + strings.Join(suites.Names(), ", ")
			if near := nearest.Near(ref, suites.Names()); len(near) > 0 {
				hint = "did you mean " + near[0] + "?"
			}
			return "", nil, o, usagef(hint, "%s: %v", ref, reason(err))
		}
		file, in = name, bytes.NewReader(shipped)
	}
	content, err = suite.Read(file, in)
	return file, content, o, wrongFile(err)
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// wrongFile makes what is wrong with a file a wrong usage.
func wrongFile(err error) error {
	var wrong *taskfile.Error
	if errors.As(err, &wrong) {
		return usagef("", "%v", err)
	}
	return err
}

// load reads a suite and tells what of its file is not honoured.
func (a *app) load(ctx context.Context, s *suiteFlags, ref string) (*suite.Suite, error) {
	file, content, o, err := s.open(a.in, ref)
	if err != nil {
		return nil, err
	}
	loaded, err := suite.Load(ctx, file, content, o)
	if err != nil {
		return nil, wrongFile(err)
	}
	for _, w := range loaded.Warnings {
		a.say("%s", printable(w))
	}
	return loaded, nil
}

// group is the name of the suite that a command line means, and the arguments
// that are left.
func (a *app) group(s *suiteFlags, args []string) (string, []string, error) {
	if s.name != "" {
		return s.name, args, nil
	}
	if len(args) == 0 {
		return "", nil, usagef("name its file, or give its name with -p", "no suite named")
	}
	file, content, o, err := s.open(a.in, args[0])
	if err != nil {
		return "", nil, err
	}
	name, err := suite.Name(file, content, o)
	return name, args[1:], wrongFile(err)
}

// members are the tasks of a suite, or those of some of its services.
func members(ctx context.Context, client *api.Client, group string, services []string) ([]api.Task, error) {
	all, err := client.Group(ctx, group)
	if err != nil || len(services) == 0 {
		return all, err
	}
	var known []string
	for i := range all {
		known = append(known, all[i].Submit.Part)
	}
	for _, name := range services {
		if !slices.Contains(known, name) {
			return nil, usagef("nearest: "+nearest.Names(name, known, 1)[0], "suite %s has no service %s", group, name)
		}
	}
	return slices.DeleteFunc(all, func(t api.Task) bool { return !slices.Contains(services, t.Submit.Part) }), nil
}

// submission is a suite as a request.
func submissionOf(s *suite.Suite) (api.Submission, error) {
	request := api.Submission{Group: s.Name}
	for i := range s.Services {
		v := &s.Services[i]
		tasks, err := v.Expand()
		if err != nil {
			return request, usagef("", "%v", err)
		}
		for range v.Replicas {
			request.Tasks = append(request.Tasks, tasks...)
		}
		if len(request.Tasks) > api.MaxTasks {
			return request, usagef("", "more than %d tasks, the most of one submission", api.MaxTasks)
		}
	}
	if len(request.Tasks) == 0 {
		return request, usagef("all services have 0 replicas", "suite %s has no tasks", s.Name)
	}
	return request, nil
}
