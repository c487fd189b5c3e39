package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"carma/cmd/carma/attach"
	"carma/cmd/carma/cli"
	"carma/cmd/carma/submit"
	"carma/cmd/carma/suite/compose"
	"carma/runner/api"
)

// upFlags contains the flags of suite up.
type upFlags struct {
	named
	endReport
	detach, dryRun, build, keep bool
}

func upCommand(a *cli.App) *cobra.Command {
	var o upFlags
	cmd := &cobra.Command{
		Use:   "up [flags] [FILE]",
		Short: "Submit the services of a Compose file and show their output",
		Long: `Submit the services of a Compose file as tasks of one group, all or none. Show
their output until all have ended, then a table of the results. Exits with 0 if
all succeeded, else with 1. A key that carma does not honour is refused, with
its line; a harmless one only gives a warning.

A service that reserves no GPU is a helper: it runs beside the tasks, in the
suite's own network, and starts before them. It ends with the last task, or at
carma suite down with --keep.

Ctrl-C stops the tasks; a second one returns at once with code 130, and does not
call that off. Ctrl-\ leaves the tasks running. Every up is a new run; the run before must have ended.`,
		Args: atMostOne,

		ValidArgsFunction: completeFile,
	}
	f := cmd.Flags()
	o.named.flags(f, "f")
	f.StringArrayVar(&o.profiles, "profile", nil, "also run the services of this `profile`; may be repeated")
	f.BoolVarP(&o.detach, "detach", "d", false, "print the suite's name and return")
	f.BoolVar(&o.dryRun, "dry-run", false, "print what would be submitted, its memory and where it would run now")
	f.BoolVar(&o.build, "build", false, "build the images of all services with build, also images that exist")
	f.BoolVar(&o.keep, "keep", false, "keep the helpers when the tasks have ended, until carma suite down")
	o.endReport.flags(f)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.detach && o.junit != "" {
			return cli.Usagef("carma suite wait --junit writes it", "with -d there is nothing to report yet")
		}
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		return up(cmd.Context(), a, client, &o, args)
	}
	return cmd
}

func up(ctx context.Context, a *cli.App, client *api.Client, o *upFlags, args []string) error {
	s, err := load(ctx, a, &o.named, args)
	if err != nil {
		return err
	}
	if err := countGPUs(ctx, a, client, s, o.dryRun); err != nil {
		return err
	}
	if err := submit.Channels(ctx, a, client); err != nil {
		return err
	}
	if o.dryRun {
		return dryRun(ctx, a, client, o, s)
	}
	if err := makeReady(ctx, a, client, s, o.build); err != nil {
		return err
	}
	request, err := s.Submission()
	if err != nil {
		return cli.Usagef("", "%v", err)
	}
	around := s.Around()
	submit.Proxies(a, client, request.Tasks, around)
	if around != nil {
		around.Keep = o.keep || len(request.Tasks) == 0
		if err := raiseUnlessStopped(ctx, a, client, s.Name, *around); err != nil {
			return err
		}
	}
	if len(request.Tasks) == 0 && o.detach {
		a.Println(s.Name)
		return nil
	} else if len(request.Tasks) == 0 {
		return stay(ctx, a, client, s.Name)
	}
	signals, release := cli.AttachedSignals()
	defer release()
	all, err := submit.Send(ctx, func(ctx context.Context) (api.SubmittedAll, error) { return client.SubmitAll(ctx, request) })
	if err != nil {
		if around != nil {
			lower(ctx, a, client, s.Name)
		}
		return err
	}
	a.Warn(all.Warnings)
	if o.detach {
		a.Println(all.Group)
		return nil
	}
	console := a.Console()
	if o.json { // standard output is for the JSON
		console.Out = a.Err
	}
	c := &attach.Many{One: attach.One{Client: client, Console: console, Signals: signals}, Group: all.Group, Tasks: all.Tasks, Paint: o.painter(console.Out, request.Tasks)}
	ends, err := c.Run(ctx)
	if err != nil {
		return c.Finish(ends, err)
	}
	if o.keep && around != nil && len(around.Helpers) > 0 {
		a.Say("the helpers stay: carma suite down -p %s takes them down", s.Name)
	}
	return ended(ctx, a, client, &o.endReport, all.Group, ends)
}

// raiseUnlessStopped starts the helpers; Ctrl-C removes them again.
func raiseUnlessStopped(ctx context.Context, a *cli.App, client *api.Client, name string, around api.Suite) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := raise(ctx, a, client, name, around)
	if err != nil && ctx.Err() != nil {
		return cli.CodeError(cli.ExitDetached)
	}
	return err
}

// dryRun prints what up would do.
func dryRun(ctx context.Context, a *cli.App, client *api.Client, o *upFlags, s *compose.Suite) error {
	sayWhatIsMade(a, s)
	for _, v := range services(s) { // the daemon cannot check folders that an up would create
		v.Submit.Mounts = slices.DeleteFunc(v.Submit.Mounts, func(m api.Mount) bool { return slices.Contains(v.Create, m.Source) })
	}
	request, err := s.Submission()
	if err != nil {
		return cli.Usagef("", "%v", err)
	}
	if around := s.Around(); around != nil {
		if err := previewHelpers(ctx, a, client, s, around, o.json); err != nil {
			return err
		}
	}
	if len(request.Tasks) == 0 {
		return nil
	}
	return submit.Preview(ctx, a, client, request, o.json)
}

// countGPUs sets the number of GPUs for services that request all.
func countGPUs(ctx context.Context, a *cli.App, client *api.Client, s *compose.Suite, mayMiss bool) error {
	n := -1
	for i := range s.Services {
		v := &s.Services[i]
		if !v.AllGPUs {
			continue
		}
		if n < 0 {
			gpus, err := client.GPUs(ctx)
			var none *api.NoDaemonError
			if mayMiss && errors.As(err, &none) && !none.Reached() {
				a.Say("service %s asks for all GPUs; without a daemon their number is not known", v.Name)
				return nil
			}
			if err != nil {
				return err
			}
			n = len(gpus)
		}
		v.Submit.GPUs = n
	}
	return nil
}

// services returns the tasks' services and the helpers of a suite.
func services(s *compose.Suite) (all []*compose.Service) {
	for _, list := range [][]compose.Service{s.Helpers, s.Services} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	return all
}

// makeReady builds the images and creates the folders that the services need.
func makeReady(ctx context.Context, a *cli.App, client *api.Client, s *compose.Suite, rebuild bool) error {
	all := services(s)
	for _, v := range all {
		for _, folder := range v.Create {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return cli.Usagef("", "services.%s.volumes: %s: %v", v.Name, folder, cli.Reason(err))
			}
			a.Say("made the folder %s for service %s", folder, v.Name)
		}
	}
	b := builder{App: a}
	defer b.close()
	for _, v := range all {
		if v.Build == nil {
			continue
		}
		if err := b.build(ctx, client, v, rebuild || v.Build.Always); err != nil {
			return fmt.Errorf("build of service %s: %w", v.Name, err)
		}
		v.Submit.Pull = "never"
	}
	return nil
}

// sayWhatIsMade lists the steps that a dry run leaves out.
func sayWhatIsMade(a *cli.App, s *compose.Suite) {
	for _, v := range services(s) {
		for _, folder := range v.Create {
			a.Say("the folder %s would be made for service %s", folder, v.Name)
		}
		if v.Build != nil {
			a.Say("the image %s would be built of %s, if it is missing", v.Submit.Image, cmp.Or(v.Build.Context, "."))
		}
	}
}
