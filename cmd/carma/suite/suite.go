// Package suite contains the command carma suite: the services of a Compose file as
// tasks. cmd/carma/suite/compose reads the file itself.
package suite

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/envs"
	"carma/cmd/carma/submit"
	"carma/cmd/carma/suite/compose"
	"carma/configs/suites"
	"carma/internal/suggest"
	"carma/runner/api"
)

// Command returns the command carma suite.
func Command(a *cli.App) *cobra.Command {
	return cli.Parent(&cobra.Command{
		Use:     "suite COMMAND",
		GroupID: cli.GroupTasks,
		Short:   "Run the services of a Compose file as tasks",
		Long: `Run the services of a Compose file as tasks of one group. The tasks get their
GPUs from carma, wait for the services that they depend on, and run again if
they run out of GPU memory. FILE is a Compose file, or a suite of carma's own:
` + strings.Join(suites.Names(), ", ") + `. Without FILE it is that of COMPOSE_FILE,
else compose.yaml here or in a folder above; -f FILE -f OVER merges several.
docs/suites.md lists the keys that carma honours.`,
		Example: `  carma suite up compose.yaml
  carma suite up -d --profile nightly compose.yaml; carma suite logs -f compose.yaml
  carma suite up --junit report.xml mixed`,
	}, upCommand(a), psCommand(a), logsCommand(a), waitCommand(a), downCommand(a))
}

// load reads a suite and prints warnings about unsupported keys.
func load(ctx context.Context, a *cli.App, s *named, args []string) (*compose.Suite, error) {
	from, err := s.open(a.In, args, false)
	if err == errNoFile {
		return nil, cli.Usagef("write for example: carma suite up compose.yaml", "%v", err)
	}
	if err != nil {
		return nil, err
	}
	if len(from.found) > 0 {
		a.Say("reading %s", strings.Join(from.found, ", "))
	}
	loaded, err := compose.Load(ctx, from.Path, from.Content, from.Options)
	if err != nil {
		return nil, wrongFile(err)
	}
	a.Warn(loaded.Warnings)
	for i := range loaded.Services {
		if err := envs.Settle(&loaded.Services[i].Submit, from.Folder); err != nil {
			return nil, err
		}
		notes, err := submit.Model(&loaded.Services[i].Submit, from.Folder)
		if err != nil {
			return nil, err
		}
		one := []api.Submit{loaded.Services[i].Submit}
		a.Warn(append(notes, submit.Commands(one, from.Folder)...))
		loaded.Services[i].Submit = one[0]
	}
	return loaded, nil
}

// group returns the name of the suite that a command line selects, and the remaining
// arguments: services, if the command accepts them.
func group(a *cli.App, s *named, args []string, more bool) (string, []string, error) {
	if s.name != "" {
		return s.name, args, nil
	}
	from, err := s.open(a.In, args, more)
	if err == errNoFile {
		return "", nil, cli.Usagef("name its file, or give its name with -p", "no suite named")
	}
	if err != nil {
		return "", nil, err
	}
	name, err := compose.Name(from.Path, from.Content, from.Options)
	return name, from.rest, wrongFile(err)
}

// members returns the tasks of a suite, or of some of its services.
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
			return nil, cli.Usagef("nearest: "+suggest.Names(name, known, 1)[0], "suite %s has no service %s", group, name)
		}
	}
	return slices.DeleteFunc(all, func(t api.Task) bool { return !slices.Contains(services, t.Submit.Part) }), nil
}
