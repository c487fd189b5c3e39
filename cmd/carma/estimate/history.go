package estimate

import (
	"fmt"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/runner/api"
)

// scoreHistory prints the errors of the daemon's estimates for finished tasks.
func scoreHistory(a *cli.App, cmd *cobra.Command, asJSON bool) error {
	client, err := a.Client(cmd)
	if err != nil {
		return err
	}
	s, err := client.Scores(cmd.Context())
	if err != nil {
		return err
	}
	if asJSON {
		return a.JSON(s)
	}
	whose := "your"
	if s.Everybody {
		whose = "all users'"
	}
	if len(s.Families) == 0 {
		a.Println(fmt.Sprintf("none of %s finished tasks measures an estimate; it must have ended well and run for half a minute (%d have not)", whose, s.Unscored))
		return nil
	}
	right := func(title string) cli.Column { return cli.Column{Title: title, Right: true} }
	t := &cli.Table{Columns: []cli.Column{
		{Title: "ESTIMATES", Least: 24}, right("TASKS"), right("MEDIAN"), right("ABOVE"), right("OVERHEAD"), right("SHIPPED: MEDIAN"), right("ABOVE"), right("OVERHEAD"),
	}}
	for _, f := range s.Families {
		t.Add(append([]string{f.Family, fmt.Sprint(f.Tasks)}, familyCells(f)...)...)
	}
	if err := a.Print(t); err != nil {
		return err
	}
	a.Println(fmt.Sprintf("of %s finished tasks; %d more measure no estimate. ABOVE: used more than was booked; SHIPPED: before earlier runs here corrected them", whose, s.Unscored))
	return nil
}

// familyCells returns the figures of a family, for corrected and for shipped estimates.
func familyCells(f api.Score) []string {
	percent := func(x float64) string {
		if x == -1 {
			return "-"
		}
		return fmt.Sprintf("%.1f %%", 100*x)
	}
	cells := []string{percent(f.Median), percent(f.Above), percent(f.Overhead), "-", "-", "-"}
	if f.PlainTasks > 0 {
		copy(cells[3:], []string{percent(f.PlainMedian), percent(f.PlainAbove), percent(f.PlainOverhead)})
	}
	return cells
}
