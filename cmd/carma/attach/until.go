package attach

import (
	"context"
	"strconv"

	"carma/cmd/carma/cli"
	"carma/runner/api"
)

// UntilFinished waits for the end of a task, across restarts of the daemon.
func UntilFinished(ctx context.Context, a *cli.App, client *api.Client, ref string) (api.Task, error) {
	return Until(ctx, a, client, ref, func(t api.Task) bool { return t.Finished() })
}

// Until waits until is returns true for a task, across restarts of the daemon.
func Until(ctx context.Context, a *cli.App, client *api.Client, ref string, is func(api.Task) bool) (api.Task, error) {
	var task api.Task
	err := cli.BeginPatience(a.Say).Do(ctx, func() (err error) { task, err = client.Task(ctx, ref); return err })
	if err != nil {
		return task, err
	}
	ref = strconv.FormatInt(task.ID, 10) // the name may be given to another task
	p := cli.NewPatience(a.Say)
	for !is(task) {
		err := client.Watch(ctx, ref, func(t api.Task) error {
			p.Answered()
			task = t
			if is(t) {
				return api.ErrStop
			}
			return nil
		})
		if err == nil && !is(task) {
			err = &api.NoDaemonError{Socket: client.Socket()} // the daemon ended the stream because it stops
		}
		if err != nil {
			if err := p.Retry(ctx, err); err != nil {
				return task, err
			}
		}
	}
	return task, nil
}
