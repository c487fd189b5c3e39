package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"carma/cmd/carma/suite"
	"carma/runner/api"
)

// suiteUp are the flags of suite up.
type suiteUp struct {
	suiteFlags
	suiteReport
	detach, dryRun, build bool
}

func (a *app) suiteUpCommand() *cobra.Command {
	var o suiteUp
	cmd := &cobra.Command{
		Use:   "up [flags] FILE",
		Short: "Submit the services of a Compose file and show their output",
		Long: `Submit the services of a Compose file as tasks of one group, all or none, and
show their output until all have ended; then a table of how. Exits with 0 when
all succeeded and with 1 when one did not. Keys that carma does not honour are
refused, with their line; harmless ones only give a warning.

The first Ctrl-C stops what was started, the second leaves it running and exits
with code 130. Every up is a new run; the one before must have ended.`,
		Args: oneSuite,

		ValidArgsFunction: suiteFile,
	}
	f := cmd.Flags()
	o.suiteFlags.flags(f)
	f.StringArrayVar(&o.profiles, "profile", nil, "run the services of this `profile` too; may be repeated")
	f.BoolVarP(&o.detach, "detach", "d", false, "print the suite's name and return")
	f.BoolVar(&o.dryRun, "dry-run", false, "print what would be submitted, its memory and where it would run now")
	f.BoolVar(&o.build, "build", false, "build the images of services with build, also those that exist")
	o.suiteReport.flags(f)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.detach && o.junit != "" {
			return usagef("carma suite wait --junit writes it", "with -d there is nothing to report yet")
		}
		client, err := a.client(cmd)
		if err != nil {
			return err
		}
		return a.suiteUp(cmd.Context(), client, &o, args[0])
	}
	return cmd
}

func (a *app) suiteUp(ctx context.Context, client *api.Client, o *suiteUp, ref string) error {
	s, err := a.load(ctx, &o.suiteFlags, ref)
	if err != nil {
		return err
	}
	if err := a.countGPUs(ctx, client, s, o.dryRun); err != nil {
		return err
	}
	if o.dryRun {
		request, err := submissionOf(s)
		if err != nil {
			return err
		}
		a.sayWhatIsMade(s)
		return a.preview(ctx, client, request, o.json)
	}
	if err := a.makeReady(ctx, client, s, o.build); err != nil {
		return err
	}
	request, err := submissionOf(s)
	if err != nil {
		return err
	}
	signals, release := stopSignals()
	defer release()
	all, err := interruptible(ctx, func(ctx context.Context) (api.SubmittedAll, error) { return client.SubmitAll(ctx, request) })
	if err != nil {
		return err
	}
	for _, w := range all.Warnings {
		a.say("%s", printable(w))
	}
	if o.detach {
		a.println(all.Group)
		return nil
	}
	console := a.console()
	if o.json { // standard output is for the JSON
		console.out = a.err
	}
	c := &crowd{attached: attached{client: client, console: console, signals: signals}, group: all.Group, tasks: all.Tasks, paint: o.painter(console.out, request.Tasks)}
	ends, err := c.run(ctx)
	if err != nil {
		return c.finish(ends, err)
	}
	return a.suiteEnded(ctx, client, &o.suiteReport, all.Group, ends)
}

// countGPUs gives those who want all GPUs as many as there are.
func (a *app) countGPUs(ctx context.Context, client *api.Client, s *suite.Suite, mayMiss bool) error {
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
				a.say("service %s asks for all GPUs; without a daemon their number is not known", v.Name)
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

// makeReady builds the images and makes the folders that the services need.
func (a *app) makeReady(ctx context.Context, client *api.Client, s *suite.Suite, rebuild bool) error {
	for i := range s.Services {
		v := &s.Services[i]
		for _, folder := range v.Create {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return usagef("", "services.%s.volumes: %s: %v", v.Name, folder, reason(err))
			}
			a.say("made the folder %s for service %s", folder, v.Name)
		}
	}
	b := builder{app: a}
	defer b.close()
	for i := range s.Services {
		v := &s.Services[i]
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

// sayWhatIsMade tells of what a dry run leaves out.
func (a *app) sayWhatIsMade(s *suite.Suite) {
	for i := range s.Services {
		v := &s.Services[i]
		for _, folder := range v.Create {
			a.say("the folder %s would be made for service %s", folder, v.Name)
		}
		if v.Build != nil {
			a.say("the image %s would be built of %s, if it is missing", v.Submit.Image, cmp.Or(v.Build.Context, "."))
		}
	}
}
