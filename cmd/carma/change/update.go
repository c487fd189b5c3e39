package change

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/cmd/carma/submit"
	"carma/cmd/carma/taskfile"
	"carma/configs/models"
	"carma/internal/units"
	"carma/runner/api"
)

// fieldsToChange lists the fields of a submission that can be changed later.
var fieldsToChange = []string{"name", "priority", "retries", "time", "slot", "mem", "est-model", "batch-size", "gpus", "exclusive", "host-mem", "host-reserve", "cpus", "cpus-reserve"}

// Update returns the command carma update.
func Update(a *cli.App) *cobra.Command {
	var to api.Submit
	var after, label, unlabel []string
	var update api.Update
	cmd := each(a, &cobra.Command{
		Use:   "update [flags] TASK... | --mine | --group NAME",
		Short: "Change tasks that have not ended",
		Long: `Change tasks that have not ended. Priority, retries, time limits, slot, name and
labels can be changed at any time; a new time limit counts from the start of the
attempt. So can host memory and processors: a running task's are booked anew and
its container's limits follow, if the machine has them and it uses no more.
Memory, model, batch size and settings of the training, GPUs and exclusive are for
a task that waits, and what it waits for (--after) only before its first launch.
A running task goes back to waiting by carma requeue --hold.
--mine, --user, --group and --filter choose among the unfinished tasks.`,
		Example: `  carma update --priority high 17
  carma update --mem 20G 17 18; carma update --group exp --priority low
  carma update --time 2d 17
  carma update --memory 32g --cpus 8 17
  carma requeue --hold 17 && carma update --gpus 2 17 && carma release 17`,
	}, change{labels: true, do: func(ctx context.Context, client *api.Client, ref string) error {
		_, err := client.Update(ctx, ref, update)
		return err
	}})
	fields := slices.Clone(fieldsToChange)
	for _, s := range models.Settings() {
		fields = append(fields, s.Name)
	}
	for _, name := range fields {
		f, ok := api.FieldNamed(name)
		if !ok {
			panic("carma update: no field " + name) // every test would fail
		}
		switch name {
		case "time":
			liftable(cmd, f, &to.TimeLimit)
		case "slot":
			liftable(cmd, f, &to.Slot)
		default:
			cli.FieldFlag(cmd, f, &to)
		}
	}
	f := cmd.Flags()
	f.StringArrayVarP(&label, "user-label", "l", nil, "label `key=value` to add or change; may be repeated")
	f.StringArrayVar(&unlabel, "unlabel", nil, "`key` of a label to take off; may be repeated")
	f.StringArrayVar(&after, "after", nil, "wait for `task` or group, as with carma run; none waits for none")
	f.SetNormalizeFunc(asDocker)
	changes := append(slices.Clone(fields), "user-label", "unlabel", "after")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !slices.ContainsFunc(changes, f.Changed) {
			return cli.Usagef("write for example: carma update --priority high "+cmp.Or(strings.Join(args, " "), "17"), "nothing to change")
		}
		if f.Changed("name") && len(args) != 1 {
			which := pick.Given(cmd)
			if which == "" {
				which = strconv.Itoa(len(args)) + " tasks"
			}
			return cli.Usagef("name one task", "--name %s for %s", to.Name, which)
		}
		if f.Changed("gpus") && to.GPUs == 0 {
			return cli.Usagef("carma rerun --gpus 0 TASK submits it again so, and carma stop ends this one", "--gpus 0: a task with GPUs cannot become one without")
		}
		if to.GPUIDs != nil {
			return cli.Usagef("carma move TASK "+strings.Join(to.GPUIDs, ",")+" says which they are", "--gpus device=%s: update changes their number", strings.Join(to.GPUIDs, ","))
		}
		notes, err := submit.Model(&to, ".")
		if err != nil {
			return err
		}
		a.Warn(notes)
		update = api.Update{Unlabel: unlabel}
		given(f.Changed, &to, &update)
		if update.Labels, err = cli.Labels(label); err != nil {
			return err
		}
		if f.Changed("after") {
			list := []api.Dependency{}
			if len(after) != 1 || after[0] != "none" {
				for _, text := range after {
					d, err := taskfile.ParseAfter(text)
					if err != nil {
						return cli.Usagef("", "--after: %v", err)
					}
					list = append(list, d)
				}
			}
			update.After = &list
		}
		return run(cmd, args)
	}
	return cmd
}

// given sets the fields of an update that flags give.
func given(changed func(string) bool, to *api.Submit, u *api.Update) {
	take(changed("name"), &u.Name, &to.Name)
	take(changed("priority"), &u.Priority, &to.Priority)
	take(changed("retries"), &u.Retries, &to.Retries)
	take(changed("time"), &u.TimeLimit, &to.TimeLimit)
	take(changed("slot"), &u.Slot, &to.Slot)
	take(changed("mem"), &u.Mem, &to.Mem)
	take(changed("est-model"), &u.EstModel, &to.EstModel)
	u.Train, u.Network = to.Train, to.Network
	take(changed("batch-size"), &u.BatchSize, &to.BatchSize)
	take(changed("gpus"), &u.GPUs, &to.GPUs)
	take(changed("exclusive"), &u.Exclusive, &to.Exclusive)
	take(changed("host-mem"), &u.HostMem, &to.HostMem)
	take(changed("host-reserve"), &u.HostReserve, &to.HostReserve)
	take(changed("cpus"), &u.CPUs, &to.CPUs)
	take(changed("cpus-reserve"), &u.CPUsReserve, &to.CPUsReserve)
}

func take[T any](changed bool, to **T, from *T) {
	if changed {
		*to = from
	}
}

// liftable adds the flag of a limit, for which none removes the limit.
func liftable(cmd *cobra.Command, f api.Field, to *time.Duration) {
	cmd.Flags().Var(&cli.Parsed[time.Duration]{To: to, Kind: "time", Parse: func(s string) (time.Duration, error) {
		if s == "none" {
			return 0, nil
		}
		return units.ParseTime(s)
	}}, f.Name, f.Help+"; none takes it away")
}
