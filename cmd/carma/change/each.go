package change

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/configs/dockerflags"
	"carma/runner/api"
)

// change is a command that changes tasks.
type change struct {
	// do changes the task with number or name ref.
	do func(ctx context.Context, client *api.Client, ref string) error
	// after, if not nil, is called after all tasks selected by flags, or a named task, are
	// changed.
	after func(ctx context.Context, client *api.Client, ref string) error
	// oldest is set if tasks selected by flags are changed oldest first. Otherwise the
	// newest come first, so that none starts in the place of a task that was just held.
	oldest bool
	// labels is set if the command sets labels, so that its --label selects no tasks.
	labels bool
}

// each makes a command from c, for tasks that are named or that flags select.
func each(a *cli.App, cmd *cobra.Command, c change) *cobra.Command {
	cmd.GroupID = cli.GroupTasks
	cmd.Args = pick.Named
	cmd.ValidArgsFunction = pick.Complete(false)
	var s pick.Selector
	if c.labels {
		s.FlagsButLabel(cmd)
	} else {
		s.Flags(cmd)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		if len(args) == 0 {
			return c.chosen(cmd.Context(), a, client, &s)
		}
		refs, err := pick.Refs(cmd.Context(), client, args, false)
		if err != nil {
			return err
		}
		return a.Each(cmd, refs, func(ref string) error {
			err := c.do(cmd.Context(), client, ref)
			if err == nil && c.after != nil {
				err = c.after(cmd.Context(), client, ref)
			}
			if err == nil {
				a.Println(ref)
			}
			return err
		})
	}
	return cmd
}

// chosen changes the unfinished tasks that s selects and prints their ids in order. It
// skips and counts tasks that the daemon refuses to change, because they belong to others
// or are in another phase. If the daemon refuses all, that is the error.
func (c *change) chosen(ctx context.Context, a *cli.App, client *api.Client, s *pick.Selector) error {
	list, err := s.Tasks(ctx, client)
	if err != nil {
		return err
	}
	if c.oldest {
		slices.Reverse(list)
	}
	var done []int64
	var refused []error
	for i := range list {
		err := c.do(ctx, client, strconv.FormatInt(list[i].ID, 10))
		status, ok := errors.AsType[*api.StatusError](err)
		switch {
		case err == nil:
			done = append(done, list[i].ID)
		case ok && slices.Contains([]int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict}, status.Status):
			refused = append(refused, err)
		default:
			return err
		}
	}
	slices.Sort(done)
	for _, id := range done {
		if c.after != nil {
			if err := c.after(ctx, client, strconv.FormatInt(id, 10)); err != nil {
				return err
			}
		}
		a.Println(id)
	}
	switch {
	case len(list) == 0:
		a.Say("there is no unfinished task that fits")
		s.SayNobody(ctx, a, client, 0)
	case len(done) == 0:
		return refused[0]
	case len(refused) > 0:
		a.Say("%d of %d tasks are left alone: %s", len(refused), len(list), cli.Describe(refused[0]))
	}
	return nil
}

// asDocker maps docker's --memory and --memory-reservation to carma's --host-mem and
// --host-reserve, as in carma run.
func asDocker(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if f, is := dockerflags.Named(name); is && (f.As == "host-mem" || f.As == "host-reserve") {
		return pflag.NormalizedName(f.As)
	}
	return pflag.NormalizedName(name)
}
