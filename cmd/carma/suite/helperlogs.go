package suite

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"carma/cmd/carma/attach"
	"carma/cmd/carma/cli"
	"carma/runner/api"
)

// endLines is the number of last lines shown of an ended helper.
const endLines = 10

// sayEnd shows the last output of a failed helper.
func sayEnd(ctx context.Context, a *cli.App, client *api.Client, name string, h *api.HelperState) {
	bad := h.ExitCode != nil && *h.ExitCode != 0 || h.Restarts > 0 || h.Health == "unhealthy"
	if !bad || ctx.Err() != nil {
		return
	}
	_ = client.HelperLogs(ctx, name, h.Name, api.LogOptions{Tail: endLines}, func(l api.LogLine) error {
		a.Say("%s: %s", h.Name, cli.Printable(l.Line))
		return nil
	})
}

// helperLogs shows the output of helpers until it ends, each line with its helper's
// name.
func helperLogs(ctx context.Context, client *api.Client, console *cli.Console, suite string, helpers []api.HelperState, o api.LogOptions) error {
	width := 0
	for i := range helpers {
		width = max(width, min(24, utf8.RuneCountInString(helpers[i].Name)))
	}
	errs := make([]error, len(helpers))
	var all sync.WaitGroup
	for i := range helpers {
		all.Go(func() {
			name := helpers[i].Name + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(helpers[i].Name))) + " |"
			errs[i] = client.HelperLogs(ctx, suite, helpers[i].Name, o, attach.Prefixed(helpers[i].Name, name, console.Line))
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(errs...)
}

// stay shows the output of a suite that has only helpers, until Ctrl-C removes them.
func stay(ctx context.Context, a *cli.App, client *api.Client, name string) error {
	s, err := client.Suite(ctx, name)
	if err != nil {
		return err
	}
	signals, release := cli.AttachedSignals()
	defer release()
	a.Say("suite %s has no task, only helpers: Ctrl-C takes it down, Ctrl-\\ leaves it running", name)
	following, end := context.WithCancel(ctx)
	defer end()
	over := make(chan error, 1)
	go func() {
		over <- helperLogs(following, client, a.Console(), name, s.Helpers, api.LogOptions{Follow: true})
	}()
	select {
	case sig := <-signals:
		end()
		<-over
		if cli.Leaves(sig) {
			a.Say("suite %s goes on without this terminal: carma suite down -p %s ends it", name, name)
			return cli.CodeError(cli.ExitDetached)
		}
	case err := <-over:
		if cli.Away(err) {
			a.Say("the daemon does not answer; the suite goes on without it: carma suite ps -p %s", name)
			return cli.CodeError(cli.ExitCarma)
		}
		if err != nil {
			return err
		}
	}
	s, err = client.Suite(ctx, name)
	if notFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := client.DropSuite(ctx, name, false, 0); err != nil && !notFound(err) {
		return err
	}
	for i := range s.Helpers {
		if code := s.Helpers[i].ExitCode; code != nil && *code != 0 {
			a.Say("helper %s has ended with exit code %d", s.Helpers[i].Name, *code)
			return cli.CodeError(cli.ExitFailed)
		}
	}
	return nil
}

// some returns the helpers of the named services, or all helpers if no service is named.
// rest contains the names that are not helpers.
func some(s *api.SuiteState, services []string) (helpers []api.HelperState, rest []string) {
	if len(services) == 0 {
		return s.Helpers, nil
	}
	for i := range s.Helpers {
		if slices.Contains(services, s.Helpers[i].Helper) {
			helpers = append(helpers, s.Helpers[i])
		}
	}
	for _, name := range services {
		if !slices.ContainsFunc(s.Helpers, func(h api.HelperState) bool { return h.Helper == name }) {
			rest = append(rest, name)
		}
	}
	return helpers, rest
}
