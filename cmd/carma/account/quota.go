package account

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/internal/suggest"
	"carma/internal/units"
	"carma/runner/api"
)

// Quota returns the command carma quota.
func Quota(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "quota [flags] [USER|@GROUP...]",
		GroupID: cli.GroupServer,
		Short:   "Show what users and groups have, may have, and their fair share",
		Long: `Show what users, and groups together, have now and may have. A group is the
account of a task: its submitter's primary unix group, or that of --account.

  TASKS, GPUS, MEMORY   what their running tasks have, of what they may have
  WAITING               tasks in the queue
  RECENT                GPU-hours lately; older ones count less (fair-half-life)
  SHARE                 the part of the GPUs that they have a right to, among
                        those who have tasks now

Limits and weights are in the daemon's configuration (quotas, quota-tasks,
quota-gpus, quota-memory, fair-weights, fair-accounts); a daemon that runs takes
changes at SIGHUP.`,
		Example: `  carma quota
  carma quota ada @students`,
		ValidArgsFunction: cli.NoCompletion,
		Args:              func(_ *cobra.Command, args []string) error { return cli.NoEmpty(args) },
	}
	asJSON := cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		all, err := client.Quotas(cmd.Context(), args...)
		if err != nil {
			return err
		}
		if all, err = chosen(all, args); err != nil {
			return err
		}
		if *asJSON {
			return a.JSON(all)
		}
		return a.Print(quotaTable(all))
	}
	return cmd
}

// who returns the name of an account as users write it: a user, or @group.
func who(a *api.Account) string {
	if a.Group != "" {
		return "@" + a.Group
	}
	return a.User
}

// chosen returns the accounts with these names, in the names' order, or all accounts if
// there are no names.
func chosen(all []api.Account, names []string) ([]api.Account, error) {
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for i := range all {
		known = append(known, who(&all[i]))
	}
	some := []api.Account{}
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			hint := "carma quota lists all"
			if near := suggest.Names(name, known, 1); len(near) > 0 {
				hint = "nearest: " + near[0] + "; " + hint
			}
			return nil, cli.Usagef(hint, "nothing is known of %s", name)
		}
		some = append(some, all[i])
	}
	return some, nil
}

func quotaTable(all []api.Account) *cli.Table {
	t := &cli.Table{Columns: []cli.Column{
		{Title: "NAME", Least: 8, Share: 1}, {Title: "TASKS", Right: true}, {Title: "GPUS", Right: true}, {Title: "MEMORY", Right: true},
		{Title: "WAITING", Right: true}, {Title: "RECENT", Right: true}, {Title: "SHARE", Right: true},
	}}
	for i := range all {
		c := &all[i]
		share := "-"
		if c.Share > 0 {
			share = fmt.Sprintf("%.0f%%", 100*c.Share)
		}
		t.Add(who(c), of(strconv.Itoa(c.Tasks), c.QuotaTasks > 0, strconv.Itoa(c.QuotaTasks)), of(strconv.Itoa(c.GPUs), c.QuotaGPUs > 0, strconv.Itoa(c.QuotaGPUs)),
			of(gib(c.Memory), c.QuotaMemory > 0, gib(c.QuotaMemory)), strconv.Itoa(c.Waiting), fmt.Sprintf("%.1f", c.Used/3600), share)
	}
	return t
}

func gib(b int64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", units.Bytes(b).GiB()), ".0") }

// of returns a text like "2 of 4", or "2" if there is no limit.
func of(have string, limited bool, limit string) string {
	if !limited {
		return have
	}
	return have + " of " + limit
}
