package tasks

import (
	"cmp"
	"slices"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/runner/api"
)

// pastColumns lists the columns of carma history.
var pastColumns = []string{"END", "ID", "NAME", "USER", "PHASE", "CODE", "GPU", "MEM", "START", "TIME", "ENERGY", "WHY"}

// ListHistory makes a command list ended tasks, ordered by time, or show the history of
// one task, unless its argument is a subcommand.
func ListHistory(a *cli.App, cmd *cobra.Command) *cobra.Command {
	s := pick.Selector{Finished: true}
	s.Flags(cmd)
	s.TimeFlags(cmd.Flags())
	last := 50
	cli.CountFlagP(cmd.Flags(), &last, 1, "last", "n", "the latest `N` (default 50; with --since: all)")
	form := cmd.Flags().String("format", "", "print `columns`, or a Go template for each task; json: a line for each")
	audit := cmd.Flags().Bool("audit", false, "list what administrators did to others' tasks and to the server")
	asJSON := cli.JSONFlag(cmd)
	cmd.ValidArgsFunction = pick.Complete(true)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *audit {
			count := 0
			if cmd.Flags().Changed("last") {
				count = last
			}
			return listAudit(a, cmd, args, &s, count, *asJSON)
		}
		if len(args) > 0 {
			return tellLife(a, cmd, args, *asJSON)
		}
		f, err := chosenFormat(cmd, *form)
		if err != nil {
			return err
		}
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		info, err := client.Info(cmd.Context())
		if err != nil {
			return err
		}
		list, err := s.Tasks(cmd.Context(), client)
		if err != nil {
			return err
		}
		s.SayNobody(cmd.Context(), a, client, len(list))
		slices.SortFunc(list, func(a, b api.Task) int { return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.ID, b.ID)) })
		if more := len(list) - last; more > 0 && (cmd.Flags().Changed("last") || !cmd.Flags().Changed("since")) {
			list = list[more:]
			if !*asJSON && f == nil {
				a.Say("%d earlier ones are left out; -n and --since show them", more)
			}
		}
		if *asJSON {
			return a.JSON(list)
		}
		if f != nil {
			return f.print(a, opened(list), info.Now, cli.WidthOf(a.Out))
		}
		var some []column
		for _, title := range pastColumns {
			c, err := columnNamed(title)
			if err != nil {
				return err
			}
			some = append(some, c)
		}
		return a.Print(table(some, opened(list), info.Now))
	}
	return cmd
}
