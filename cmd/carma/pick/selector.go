// Package pick finds the tasks for a command: tasks that it names, or that its flags
// select. All commands use it, so that a name, a pattern and a filter mean the same
// everywhere.
package pick

import (
	"context"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/cmd/carma/cli"
	"carma/mapper/model"
	"carma/runner/api"
)

// Selector selects tasks. The zero value selects all unfinished tasks.
type Selector struct {
	All, Mine, Failed, Finished bool
	User, Group, Label          string
	Limit                       int

	since, until string
	filters      []filter
}

// Flags adds the flags that select tasks.
func (s *Selector) Flags(cmd *cobra.Command) {
	s.FlagsButLabel(cmd)
	cmd.Flags().StringVarP(&s.Label, "label", "l", "", "only tasks with this user label, `key` or key=value")
}

// FlagsButLabel adds the same flags as Flags except --label, for a command in which
// --label sets a label.
func (s *Selector) FlagsButLabel(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&s.Mine, "mine", false, "only your own tasks")
	f.StringVar(&s.User, "user", "", "only the tasks of this `user`")
	f.StringVar(&s.Group, "group", "", "only the tasks of this `group`")
	f.Var(&filterValue{s}, "filter", "only tasks that fit `key=value`: status, name, label, user, group, image, gpu, priority, exited; may be repeated")
	cli.Complete(cmd, "filter", cli.Words(filterKeys()))
}

// TimeFlags adds --since, --until and --failed, which also apply to finished tasks.
func (s *Selector) TimeFlags(f *pflag.FlagSet) {
	f.StringVar(&s.since, "since", "", "also finished tasks, those that had not ended before this `time`: 2h (ago), 09:30, yesterday, 2026-01-02")
	f.StringVar(&s.until, "until", "", "also finished tasks, those that were submitted before this `time`")
	f.BoolVar(&s.Failed, "failed", false, "only failed tasks")
}

// Given returns the first flag on a command line that selects tasks, or "".
func Given(cmd *cobra.Command) string {
	for _, name := range []string{"all", "mine", "user", "group", "label", "filter", "finished", "failed", "since", "until"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			return "--" + name
		}
	}
	return ""
}

// Many reports whether tasks are selected by more than a group and by user.
func (s *Selector) Many() bool {
	return s.Mine || s.User != "" || s.Label != "" || len(s.filters) > 0
}

// Named checks arguments: either tasks, or flags that select them.
func Named(cmd *cobra.Command, args []string) error {
	flag := Given(cmd)
	group := cmd.Flags().Lookup("group")
	switch {
	case group != nil && group.Changed && group.Value.String() == "":
		return cli.Usagef("carma ps tells their names", "--group names no group")
	case flag != "" && len(args) > 0:
		return cli.Usagef("give one of them", "%s and task %s", flag, args[0])
	case flag == "" && len(args) == 0:
		return cli.Usagef("write for example: "+cmd.CommandPath()+" 17", "no task named")
	}
	return cli.NoEmpty(args)
}

// Tasks returns the tasks, newest first.
func (s *Selector) Tasks(ctx context.Context, client *api.Client) ([]api.Task, error) {
	o, err := s.options(ctx, client)
	if err != nil {
		return nil, err
	}
	limit := o.Limit
	if len(s.filters) > 0 {
		o.Limit = 0 // filtered here, so counted here
	}
	list, err := client.Tasks(ctx, o)
	if err != nil {
		return nil, err
	}
	o.Limit = limit
	uid := os.Getuid()
	list = slices.DeleteFunc(list, func(t api.Task) bool { return !o.Fits(&t, uid) || !s.fits(&t) })
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	return list, nil
}

// Fits reports whether a task, in any phase, is selected.
func (s *Selector) Fits(t *api.Task) bool {
	o := api.ListOptions{All: true, Mine: s.Mine, User: s.User, Group: s.Group, Label: s.Label}
	return o.Fits(t, os.Getuid()) && s.fits(t)
}

// options returns the conditions that the daemon can check.
func (s *Selector) options(ctx context.Context, client *api.Client) (o api.ListOptions, err error) {
	o = api.ListOptions{All: s.All || s.Finished || s.Failed || s.since != "" || s.until != "", Mine: s.Mine, User: s.User, Group: s.Group, Label: s.Label, Limit: s.Limit}
	if s.Finished {
		o.Phase = strings.Join(finished, ",")
	}
	if s.Failed {
		o.Phase = string(model.Failed)
	}
	for _, f := range s.filters {
		o.All = o.All || f.ofFinished()
	}
	if s.since == "" && s.until == "" {
		return o, nil
	}
	info, err := client.Info(ctx)
	if err != nil {
		return o, err
	}
	o.Since, o.Until, err = s.Span(info.Now)
	if err == nil && o.Since.After(info.Now) {
		err = cli.Usagef("write for example 2h (ago), 09:30, yesterday, 2026-01-02", "--since: %q is still to come", s.since)
	}
	return o, err
}

// Span returns the times of --since and --until, zero if not given. now is the daemon's.
func (s *Selector) Span(now time.Time) (since, until time.Time, err error) {
	read := func(flag, text string, to *time.Time) {
		if text != "" && err == nil {
			if *to, err = Moment(text, now); err != nil {
				err = cli.Usagef("", "--%s: %v", flag, err)
			}
		}
	}
	read("since", s.since, &since)
	read("until", s.until, &until)
	if err == nil && !until.IsZero() && until.Before(since) {
		err = cli.Usagef("2h is two hours ago", "--until %s is before --since %s", s.until, s.since)
	}
	return since, until, err
}

var finished = []string{string(model.Succeeded), string(model.Failed), string(model.Cancelled)}

// OfRemoved reports whether a sum of removed tasks is selected. Such sums have only a
// user and a group, so other flags select none.
func (s *Selector) OfRemoved(u *api.Used) bool {
	if s.Failed || s.Finished || s.Label != "" || len(s.filters) > 0 || s.User != "" && s.User != u.User || s.Group != "" && s.Group != u.Group {
		return false
	}
	if !s.Mine {
		return true
	}
	me, err := user.Current()
	return err == nil && me.Username == u.User
}
