// Package account contains the commands carma report and carma quota. The report sums the
// usage of tasks by user, account, group, image or GPU.
package account

import (
	"encoding/csv"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/internal/units"
	"carma/runner/api"
)

// Report returns the command carma report.
func Report(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "report [flags]",
		GroupID: cli.GroupServer,
		Short:   "Sum up GPU time, memory, waiting and energy by user",
		Long: `Sum up what tasks have come to, per user, account (unix group), group, image
or GPU, the most GPU-hours first. Of tasks that were removed, by carma rm or by
age and number (carma info), it knows sums of whole days, for 400 days; they count
unless tasks are chosen by label, filter or outcome.

  GPU-HOURS    time on GPUs, shared or not, counted for each GPU
  AWAY         hours suspended, which are not in GPU-HOURS; there if any was
  SHARE        the part of all GPU-hours
  OOMS         attempts that ran out of GPU memory
  IDLE         tasks that run, hold GPU memory and do nothing now
  BOOKED       memory booked, in GiB-hours, of attempts whose use was measured
  WASTED       the part of it above what was used at most; all of it where it was
               measured that a task had nothing on its GPUs
  WAIT         mean time from submission to the first start
  ENERGY       their share of their GPUs' energy

--since and --until count only time within. For tasks that cross a border, GPU
time, memory and energy are cut there.`,
		Example: `  carma report --since 7d
  carma report --by image --mine; carma report --by gpu --csv > gpus.csv`,
		Args: cli.NoArgs,

		ValidArgsFunction: cli.NoCompletion,
	}
	s := pick.Selector{All: true}
	s.Flags(cmd)
	s.TimeFlags(cmd.Flags())
	by := "user"
	cli.ChoiceFlag(cmd.Flags(), &by, kinds, "by", "what to sum up by: user, account, group, image, gpu (default user)")
	cli.Complete(cmd, "by", cli.Words(kinds))
	asCSV := cmd.Flags().Bool("csv", false, "print CSV")
	asJSON := cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *asCSV && *asJSON {
			return cli.Usagef("give one of them", "--csv and --json")
		}
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		info, err := client.Info(cmd.Context())
		if err != nil {
			return err
		}
		since, until, err := s.Span(info.Now)
		if err != nil {
			return err
		}
		list, err := s.Tasks(cmd.Context(), client)
		if err != nil {
			return err
		}
		past, err := removed(cmd, client, &s, since, until)
		if err != nil {
			return err
		}
		s.SayNobody(cmd.Context(), a, client, len(list)+len(past))
		rows, total := sum(list, past, by, span{since, until}, info.Now)
		switch {
		case *asJSON:
			if rows == nil {
				rows = []Usage{}
			}
			return a.JSON(struct {
				By    string    `json:"by"`
				Since time.Time `json:"since,omitzero"`
				Until time.Time `json:"until,omitzero"`
				Now   time.Time `json:"now"`
				Rows  []Usage   `json:"rows"`
				Total Usage     `json:"total"`
			}{by, since, until, info.Now, rows, total})
		case *asCSV:
			return writeCSV(a, by, rows)
		}
		if err := a.Print(reportTable(by, append(rows, total))); err != nil {
			return err
		}
		if total.UnmeasuredHours >= 0.05 {
			_, err = fmt.Fprintf(a.Out, "\nBOOKED and WASTED leave out %.1f GPU-hours whose use of memory was not measured.\n", total.UnmeasuredHours)
		}
		return err
	}
	return cmd
}

// removed returns the sums of the chosen removed tasks, from the day of since to the day
// of until.
func removed(cmd *cobra.Command, client *api.Client, s *pick.Selector, since, until time.Time) ([]api.Used, error) {
	first, end := "", ""
	if !since.IsZero() {
		first = since.Local().Format(time.DateOnly)
	}
	if !until.IsZero() {
		end = until.Local().Add(24*time.Hour - 1).Format(time.DateOnly)
	}
	all, err := client.Used(cmd.Context(), first, end)
	if status, ok := errors.AsType[*api.StatusError](err); ok && status.Status == http.StatusNotFound {
		err = nil // an older daemon has none
	}
	return slices.DeleteFunc(all, func(u api.Used) bool { return !s.OfRemoved(&u) }), err
}

// hoursColumn is the index of the column GPU-HOURS.
const hoursColumn = 5

func reportTable(by string, rows []Usage) *cli.Table {
	title := map[string]string{"user": "USER", "account": "ACCOUNT", "group": "GROUP", "image": "IMAGE", "gpu": "GPU"}[by]
	t := &cli.Table{Columns: []cli.Column{
		{Title: title, Least: 8, Share: 1}, {Title: "TASKS", Right: true}, {Title: "FAILED", Right: true}, {Title: "OOMS", Right: true}, {Title: "IDLE", Right: true}, {Title: "GPU-HOURS", Right: true},
		{Title: "SHARE", Right: true}, {Title: "BOOKED", Right: true}, {Title: "WASTED", Right: true}, {Title: "WAIT", Right: true}, {Title: "ENERGY", Right: true},
	}}
	away := slices.ContainsFunc(rows, func(u Usage) bool { return u.AwayHours > 0 })
	if away {
		t.Columns = slices.Insert(t.Columns, hoursColumn+1, cli.Column{Title: "AWAY", Right: true})
	}
	for _, u := range rows {
		wasted, energy := "-", "-"
		if u.BookedGiBHours > 0 {
			wasted = fmt.Sprintf("%.0f%%", 100*u.WastedGiBHours/u.BookedGiBHours)
		}
		if u.EnergyJ > 0 {
			energy = units.Joules(u.EnergyJ).String()
		}
		cells := []string{u.Name, strconv.Itoa(u.Tasks), strconv.Itoa(u.Failed), strconv.Itoa(u.OOMs), strconv.Itoa(u.Idle), fmt.Sprintf("%.1f", u.GPUHours), fmt.Sprintf("%.0f%%", 100*u.Share),
			fmt.Sprintf("%.0f", u.BookedGiBHours), wasted, cli.Age(time.Duration(u.Waiting * float64(time.Second))), energy}
		if away {
			cells = slices.Insert(cells, hoursColumn+1, fmt.Sprintf("%.1f", u.AwayHours))
		}
		t.Add(cells...)
	}
	return t
}

// writeCSV prints a line per row, with the names of the JSON fields as header.
func writeCSV(a *cli.App, by string, rows []Usage) error {
	w := csv.NewWriter(a.Out)
	lines := [][]string{{by, "tasks", "succeeded", "failed", "gpu_ooms", "gpu_hours", "suspended_hours", "share", "booked_gib_hours", "wasted_gib_hours", "mean_waiting_seconds", "energy_j", "unmeasured_gpu_hours"}}
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	for _, u := range rows {
		lines = append(lines, []string{
			u.Name, strconv.Itoa(u.Tasks), strconv.Itoa(u.Succeeded), strconv.Itoa(u.Failed), strconv.Itoa(u.OOMs), number(u.GPUHours), number(u.AwayHours), number(u.Share),
			number(u.BookedGiBHours), number(u.WastedGiBHours), number(u.Waiting), number(u.EnergyJ), number(u.UnmeasuredHours),
		})
	}
	return w.WriteAll(lines)
}
