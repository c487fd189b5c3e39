package tasks

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carma/cmd/carma/attach"
	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
)

const psLong = `List the unfinished tasks, newest first. GPU is where a task runs (x2: it waits
for two), MEM what it has booked or waits for on each GPU, in GiB. TIME is how
long it has waited, runs or ran. PROGRESS is the share that is done, as its
output says, and the time to its end. SLOW, in a table of 100 columns or more,
is how many times as long as alone it takes; ~ marks a prediction. AWAY, there
too, is how long it was suspended, which TIME leaves out, and HOST the memory in
GiB that now holds what it had on its GPU. ENERGY, with -a, is what it has used
of its GPUs' energy. PRIO is there if a task is not of normal priority.

The waiting tasks of an array or a sweep are one row, and so are those that have
ended alike. --open or the name of the group shows each.

--format takes columns, "table ID,NAME,COMMAND", or a Go template for each task,
"{{.ID}} {{.Name}}". The columns are ID, NAME, USER, GROUP, PRIO, PHASE, GPU,
MEM, TIME, SUBMITTED, START, END, CODE, PROGRESS, SLOW, ENERGY, AWAY, HOST,
IMAGE, COMMAND, LABELS and WHY.
A table is as wide as the terminal; what goes to a pipe is not cut.

--watch prints the table again and again: on a terminal in its place, in a pipe
with an empty line between two. It outlasts a restart of the daemon; Ctrl-C ends
it with exit code 0. carma top shows more, and has keys.`

const psExample = `  carma ps
  carma ps -a -n 20; carma ps --failed --since yesterday --mine
  carma ps --watch --mine; carma ps --watch=10s --filter status=waiting
  carma ps exp; carma ps --filter status=waiting --filter image=my/train
  carma ps -a --format 'table ID,NAME,START,END,COMMAND'
  carma stop $(carma ps -q -l sweep=7)`

// Ps returns the command carma ps.
func Ps(a *cli.App) *cobra.Command {
	p := ps{app: a}
	cmd := &cobra.Command{
		Use:               "ps [flags] [GROUP|TASK...]",
		GroupID:           cli.GroupTasks,
		Short:             "List tasks",
		Long:              psLong,
		Example:           psExample,
		Args:              func(_ *cobra.Command, args []string) error { return cli.NoEmpty(args) },
		ValidArgsFunction: pick.Complete(false),
		RunE:              p.run,
	}
	flags := cmd.Flags()
	flags.BoolVarP(&p.All, "all", "a", false, "also finished tasks")
	flags.IntVarP(&p.Limit, "last", "n", 0, "only the newest `N`")
	p.Flags(cmd)
	p.TimeFlags(flags)
	flags.BoolVar(&p.open, "open", false, "a row for each task of an array or a sweep")
	flags.StringVar(&p.form, "format", "", "print `columns`, or a Go template for each task; json: a line for each")
	flags.BoolVarP(&p.quiet, "quiet", "q", false, "only the ids")
	flags.BoolVar(&p.full, "no-trunc", false, "do not cut the table to the width")
	p.json = cli.JSONFlag(cmd)
	p.watch = cli.WatchFlag(cmd)
	return cmd
}

// ps is one call of carma ps.
type ps struct {
	pick.Selector
	app               *cli.App
	open, quiet, full bool
	form              string
	json              *bool
	watch             *time.Duration
	screen            io.Writer // its width limits the table
}

func (p *ps) run(cmd *cobra.Command, args []string) error {
	if p.Limit < 0 {
		return cli.Usagef("write for example -n 10", "-n %d is negative", p.Limit)
	}
	f, err := chosenFormat(cmd, p.form)
	if err != nil {
		return err
	}
	if err := cli.NoWatch(cmd, "json", "quiet"); err != nil {
		return err
	}
	client, err := p.app.Client(cmd)
	if err != nil {
		return err
	}
	if p.screen = p.app.Out; *p.watch > 0 {
		client.Stopping = nil // the table remains while the next daemon starts
		return p.app.Watch(cmd.Context(), *p.watch, func(ctx context.Context, a *cli.App) error {
			picture := *p
			picture.app = a
			return picture.once(ctx, client, f, args)
		})
	}
	return p.once(cmd.Context(), client, f, args)
}

// once prints the tasks.
func (p *ps) once(ctx context.Context, client *api.Client, f *format, args []string) error {
	list, err := listed(ctx, client, &p.Selector, args)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		p.SayNobody(ctx, p.app, client, len(list))
	}
	switch {
	case *p.json:
		return p.app.JSON(list)
	case p.quiet:
		for _, t := range list {
			p.app.Println(t.ID)
		}
		return nil
	}
	info, err := client.Info(ctx)
	if err != nil {
		return err
	}
	sayOnce(list, info.Trouble)
	if f != nil {
		return f.print(p.app, opened(list), info.Now, p.width())
	}
	return p.table(list, &info, p.open || len(args) > 0 || p.Group != "")
}

// width returns the width of the table in cells, or 0 if it is not cut.
func (p *ps) width() int {
	if p.full {
		return 0
	}
	return cli.WidthOf(p.screen)
}

// table prints the tasks and then the daemon's troubles. open is set if each task has its
// own row.
func (p *ps) table(list []api.Task, info *api.Info, open bool) error {
	rows := folded(list)
	if open {
		rows = opened(list)
	}
	if err := table(shown(rows, info.Now, p.width()), rows, info.Now).Write(p.app.Out, p.width()); err != nil {
		return err
	}
	for _, x := range info.Trouble {
		p.app.Say("%s", cli.Printable(x.String()))
	}
	return nil
}

// chosenFormat reads --format. It returns nil if it was not given.
func chosenFormat(cmd *cobra.Command, text string) (*format, error) {
	if !cmd.Flags().Changed("format") {
		return nil, nil
	}
	for _, other := range []string{"json", "quiet"} {
		if cmd.Flags().Changed(other) {
			return nil, cli.Usagef("give one of them", "--format and --%s", other)
		}
	}
	return parseFormat(text)
}

// sayOnce removes reasons from the tasks' rows that are repeated in the lines below the
// table.
func sayOnce(list []api.Task, trouble []api.Trouble) {
	for i := range list {
		for _, x := range trouble {
			if strings.HasPrefix(list[i].Waits, x.Text) {
				list[i].Waits = "nothing is started, see below"
			}
		}
	}
}

// wide is the least width of a table with slowdowns and energy.
const wide = 100

// Table returns a table with a row for each task. now is the daemon's time. A width of 0
// means no limit.
func Table(list []api.Task, now time.Time, width int) *cli.Table {
	rows := opened(list)
	return table(shown(rows, now, width), rows, now)
}

// used formats an energy in joules, or returns empty if it is 0 or unknown.
func used(joules float64) string {
	if joules <= 0 {
		return ""
	}
	return units.Joules(joules).String()
}

// Where returns the GPUs on which a task runs, or the number of GPUs that it waits for.
func Where(t *api.Task) string {
	if t.Submit.NoGPU {
		return "none"
	}
	if last := cli.LastAttempt(t); last != nil && (cli.Placed(t) || t.Finished()) {
		return cli.Indexes(last.GPUs)
	}
	if t.GPUCount > 1 {
		return "x" + strconv.Itoa(t.GPUCount)
	}
	return "-"
}

// Need returns the memory in GiB that is allocated to a task on each GPU, or that the task
// waits for.
func Need(t *api.Task) string {
	switch {
	case t.Submit.NoGPU:
		return "-"
	case t.Phase == string(model.Estimating):
		return "?"
	case cli.Placed(t) && !t.Alone && cli.LastAttempt(t) != nil && cli.LastAttempt(t).Grant > 0:
		return cli.GiB(cli.LastAttempt(t).Grant) // the figure in gpus and why
	case t.Need == 0:
		return "whole"
	}
	return cli.GiB(t.Need)
}

// TimeOf returns the time for which a task has waited, is suspended, runs or ran.
func TimeOf(t *api.Task, now time.Time) time.Duration {
	switch {
	case t.Finished() && t.Started.IsZero():
		return t.Ended.Sub(t.Submitted)
	case t.Finished():
		return t.Ended.Sub(t.Started) - cli.LastAway(t)
	case t.Suspension != nil && !t.Suspension.Since.IsZero():
		return now.Sub(t.Suspension.Since)
	case cli.Placed(t) && !t.Started.IsZero() && t.Phase != string(model.Launching):
		return now.Sub(t.Started) - cli.LastAway(t)
	}
	return now.Sub(t.Submitted)
}

// Hint returns the most important fact about a task.
func Hint(t *api.Task) string {
	switch {
	case t.Finished():
		if t.Phase == string(model.Succeeded) {
			if at := cli.LastAttempt(t); at != nil && at.Remark != "" {
				return at.Remark
			}
			return relaunches(t)
		}
		if t.Reason != "" {
			return t.Reason
		}
		if t.ExitCode != nil {
			return fmt.Sprintf("exit code %d", *t.ExitCode)
		}
		return ""
	case t.Suspension != nil:
		return attach.Aside(t)
	case t.Idle != nil:
		return cli.IdleText(t.Idle)
	case cli.Placed(t):
		return relaunches(t)
	case t.Position > 0 && t.Waits != "":
		return cli.Ordinal(t.Position) + "; " + t.Waits
	case t.Position > 0:
		return cli.Ordinal(t.Position)
	}
	return t.Waits
}

// relaunches describes that a task is not in its first attempt.
func relaunches(t *api.Task) string {
	n := len(t.Attempts)
	if n < 2 {
		return ""
	}
	why := t.Attempts[n-2].Outcome
	if code := t.Attempts[n-2].ReasonCode; why == "stopped" && code != "" {
		why = string(code) // gpu-oom, slot-used
	}
	switch why {
	case "infrastructure":
		why = "a fault of the server" // of its engine or a GPU, not of the task
	case "recalled":
		why = "requeue"
	}
	return fmt.Sprintf("attempt %d, after %s", t.Attempts[n-1].N, why)
}
