package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/suite/compose"
	"carma/runner/api"
)

// lookEvery is the time between two requests for the state of a starting suite.
const lookEvery = 200 * time.Millisecond

// notFound reports whether the daemon answered that an object does not exist.
func notFound(err error) bool {
	var status *api.StatusError
	return errors.As(err, &status) && status.Status == http.StatusNotFound
}

// raise starts the helpers of a suite and returns when the tasks can start. If they
// cannot, it removes the helpers that it has made.
func raise(ctx context.Context, a *cli.App, client *api.Client, name string, around api.Suite) error {
	_, err := client.Suite(ctx, name)
	fresh := notFound(err)
	if err == nil || fresh {
		_, err = client.PutSuite(ctx, name, around, false)
	}
	if err != nil {
		return err
	}
	s, err := untilReady(ctx, a, client, name)
	if err == nil && s.Phase != "ready" {
		a.Say("suite %s: %s", name, cli.Printable(cmp.Or(s.Reason, "it is being taken down")))
		err = cli.CodeError(cli.ExitFailed)
	}
	if err != nil {
		if fresh && s.Phase != "stopping" {
			for i := range s.Helpers {
				sayEnd(ctx, a, client, name, &s.Helpers[i])
			}
			lower(ctx, a, client, name)
		}
		return err
	}
	for i := range s.Helpers {
		h := &s.Helpers[i]
		a.Say("helper %s is %s%s", h.Name, cli.Printable(condition(h)), at(h.Ports, ", at "))
	}
	return nil
}

// lower removes the helpers that a failed up has made.
func lower(ctx context.Context, a *cli.App, client *api.Client, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if _, err := client.DropSuite(ctx, name, false, 0); err != nil && !notFound(err) {
		a.Say("the helpers of suite %s stay: %s; carma suite down -p %s takes them down", name, cli.Describe(err), name)
	}
}

// untilReady waits until a suite is up, or has failed, across restarts of the
// daemon.
func untilReady(ctx context.Context, a *cli.App, client *api.Client, name string) (s api.SuiteState, err error) {
	told, p := "", cli.NewPatience(a.Say)
	for {
		s, err = client.Suite(ctx, name)
		switch {
		case err != nil:
			if err = p.Retry(ctx, err); err != nil {
				return s, err
			}
			continue
		case s.Phase != "starting":
			return s, nil
		case s.Reason != "" && s.Reason != told:
			told = s.Reason
			a.Say("%s", cli.Printable(told))
		}
		p.Answered()
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

// previewHelpers prints the helpers of a suite; the daemon checks them.
func previewHelpers(ctx context.Context, a *cli.App, client *api.Client, s *compose.Suite, around *api.Suite, asJSON bool) error {
	_, err := client.PutSuite(ctx, s.Name, *around, true)
	var none *api.NoDaemonError
	if err != nil && !(errors.As(err, &none) && !none.Reached()) {
		return err
	}
	if len(around.Helpers) == 0 {
		return nil
	}
	if asJSON {
		for i := range around.Helpers {
			a.Say("helper %s-%s would run beside the tasks", s.Name, around.Helpers[i].Name)
		}
		return nil
	}
	if err := a.Print(planTable(around, s.Name)); err != nil {
		return err
	}
	a.Say("%s would run beside the tasks", count(len(around.Helpers), "helper"))
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
