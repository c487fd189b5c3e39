package tasks

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/runner/api"
)

// listAudit prints the actions of administrators, on all tasks or on one. last is the
// number of actions, or 0 if none was given.
func listAudit(a *cli.App, cmd *cobra.Command, args []string, s *pick.Selector, last int, asJSON bool) error {
	for _, name := range []string{"failed", "group", "label", "filter", "format"} {
		if cmd.Flags().Changed(name) {
			return cli.Usagef("--mine, --user, --since, --until and -n choose acts, and so does a task", "--%s chooses no acts of administrators", name)
		}
	}
	if len(args) > 1 {
		return cli.Usagef("carma history --help", "one task at a time: %s", strings.Join(args, " "))
	}
	client, err := a.Client(cmd)
	if err != nil {
		return err
	}
	info, err := client.Info(cmd.Context())
	if err != nil {
		return err
	}
	o := api.AuditOptions{User: s.User, Mine: s.Mine, Limit: last}
	if o.Since, o.Until, err = s.Span(info.Now); err != nil {
		return err
	}
	if len(args) > 0 {
		if o.Task, err = numberOf(cmd.Context(), client, args[0]); err != nil {
			return err
		}
	}
	if last == 0 && cmd.Flags().Changed("since") {
		o.Limit = api.MaxAudit
	}
	acts, err := client.Audit(cmd.Context(), o)
	if status, is := errors.AsType[*api.StatusError](err); is && status.Status == http.StatusNotFound {
		return cli.Usagef("update the daemon", "this daemon keeps no audit log: it is %s", info.Version)
	}
	if err != nil {
		return err
	}
	if acts.Damaged > 0 {
		a.Say("%d lines of the audit log cannot be read", acts.Damaged)
	}
	if asJSON {
		return a.JSON(acts.Records)
	}
	if acts.More {
		a.Say("earlier ones are left out; -n and --since show them")
	}
	if !acts.All {
		a.Say("acts of yours and on what is yours; root sees all")
	}
	return a.Print(auditTable(acts.Records))
}

// numberOf returns the number of a task. It does not look up a number, because the task
// may have been removed.
func numberOf(ctx context.Context, client *api.Client, ref string) (int64, error) {
	if n, err := strconv.ParseInt(ref, 10, 64); err == nil && n > 0 {
		return n, nil
	}
	ref, err := pick.Ref(ctx, client, ref)
	if err != nil {
		return 0, err
	}
	task, err := client.Task(ctx, ref)
	return task.ID, err
}

func auditTable(acts []api.AuditRecord) *cli.Table {
	t := &cli.Table{Columns: []cli.Column{{Title: "TIME"}, {Title: "WHO"}, {Title: "ACTION"}, {Title: "ALLOWED"}, {Title: "ON", Least: 8, Share: 1}, {Title: "OWNER"}, {Title: "DETAIL", Least: 8, Share: 3}}}
	for _, act := range acts {
		on, allowed := act.Object, "yes"
		if act.Task != 0 {
			on = "task " + strconv.FormatInt(act.Task, 10)
		}
		if !act.Allowed {
			allowed = "no"
		}
		t.Add(act.At.Local().Format("2006-01-02 15:04:05"), act.Who, act.Action, allowed, on, act.Owner, act.Detail)
	}
	return t
}
