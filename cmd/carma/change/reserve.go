package change

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/internal/units"
	"carma/runner/api"
)

// Reserve returns the command carma reserve.
func Reserve(a *cli.App) *cobra.Command {
	var q api.ReserveRequest
	var from, to, mem string
	cmd := &cobra.Command{
		Use:     "reserve [flags] --for USER|@GROUP --to TIME {--gpus N | GPU...}",
		GroupID: cli.GroupServer,
		Short:   "Keep GPUs, or memory on them, for somebody for a time",
		Long: `Keep GPUs, or memory on them, for a user or a unix group for a time. Tasks that
run at its begin go on. Nobody else's task is started there that would run into
it: by its time limit, or by what earlier runs took; one of which nothing is
known is not started within 4 hours before. why and gpus say so. It outlasts
restarts of the daemon. For admins. Prints its number.

A time is a time of day, a date, both, or how long from now: 22:00, 2d,
"2026-01-02 08:00". --to 8:00 is the first one after the begin.`,
		Example: `  carma reserve --gpus 2 --for ada --from 22:00 --to 8:00 --reason deadline
  carma reserve --for @students --to 2h 0 1
  carma reserve --mem 20G --gpus 1 --for ada --to 18:00`,
		ValidArgsFunction: cli.NoCompletion,
	}
	f := cmd.Flags()
	f.IntVar(&q.Count, "gpus", 0, "so many `GPUs`, chosen now, in place of named ones")
	f.StringVar(&mem, "mem", "", "`memory` on each GPU (default: the whole GPU)")
	f.StringVar(&q.For, "for", "", "for whom: a `user`, or @group")
	f.StringVar(&from, "from", "", "when it begins, a `time` (default: now)")
	f.StringVar(&to, "to", "", "when it ends, a `time`")
	f.StringVar(&q.Why, "reason", "", "reason, shown by reservations, gpus and why")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		switch example := "write for example: carma reserve --gpus 2 --for ada --from 22:00 --to 8:00"; {
		case q.For == "":
			return cli.Usagef(example, "--for is missing")
		case to == "":
			return cli.Usagef(example, "--to is missing")
		case f.Changed("gpus") && q.Count < 1:
			return cli.Usagef("write for example --gpus 2", "--gpus %d", q.Count)
		case q.Count > 0 && len(args) > 0:
			return cli.Usagef("give one of them", "--gpus %d and GPU %s", q.Count, args[0])
		case q.Count == 0 && len(args) == 0:
			return cli.Usagef("name some, or write --gpus 2; carma gpus lists them", "no GPU named")
		}
		return cli.NoEmpty(args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.Changed("mem") {
			b, err := units.ParseAmount(mem)
			if err == nil && b <= 0 {
				err = fmt.Errorf("%q keeps nothing; write for example 20G", mem)
			}
			if err != nil {
				return cli.Usagef("", "--mem: %v", err)
			}
			q.Memory = int64(b)
		}
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		info, err := client.Info(cmd.Context())
		if err != nil {
			return err
		}
		if q.GPUs, err = pick.GPUs(args); err != nil {
			return err
		}
		begin := info.Now
		if from != "" {
			if q.From, err = pick.Ahead("--from", from, info.Now); err != nil {
				return err
			}
			begin = q.From
		}
		if q.Until, err = pick.Ahead("--to", to, begin); err != nil {
			return err
		}
		made, err := client.Reserve(cmd.Context(), q)
		if err != nil {
			return err
		}
		a.Println(strconv.Itoa(made.ID))
		return nil
	}
	return cmd
}

// Reservations returns the command carma reservations.
func Reservations(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "reservations [flags]", GroupID: cli.GroupServer, Args: cli.NoArgs,
		Short: "List what is reserved for whom, and when",
		Long:  `List the reservations that have not ended, the earliest first.`,
	}
	asJSON := cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		list, err := client.Reservations(cmd.Context())
		if err != nil {
			return err
		}
		if *asJSON {
			return a.JSON(list)
		}
		t := &cli.Table{Columns: []cli.Column{
			{Title: "ID", Right: true}, {Title: "FOR", Least: 8, Share: 1}, {Title: "GPUS"}, {Title: "MEMORY", Right: true}, {Title: "FROM"}, {Title: "TO"}, {Title: "BY"}, {Title: "REASON", Least: 8, Share: 2},
		}}
		for _, r := range list {
			var gpus []string
			for _, g := range r.GPUs {
				gpus = append(gpus, strconv.Itoa(g.Index))
			}
			memory := "all"
			if r.Memory > 0 {
				memory = cli.GiB(r.Memory)
			}
			t.Add(strconv.Itoa(r.ID), cli.Printable(r.For), strings.Join(gpus, ","), memory, minute(r.From), minute(r.Until), cli.Printable(r.By), cmp.Or(cli.OneLine(cli.Printable(r.Why)), "-"))
		}
		return a.Print(t)
	}
	return cmd
}

func minute(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

// Unreserve returns the command carma unreserve.
func Unreserve(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "unreserve ID...", GroupID: cli.GroupServer,
		Short:             "End reservations",
		Long:              `End reservations, by the numbers that carma reservations lists. For admins.`,
		ValidArgsFunction: cli.NoCompletion,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("carma reservations lists them", "no reservation named")
			}
			for _, arg := range args {
				if n, err := strconv.Atoi(arg); err != nil || n < 1 {
					return cli.Usagef("carma reservations lists the numbers", "%q is no number of a reservation", arg)
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.Client(cmd)
			if err != nil {
				return err
			}
			return a.Each(cmd, args, func(ref string) error {
				n, _ := strconv.Atoi(ref)
				return client.Unreserve(cmd.Context(), n)
			})
		},
	}
}

// Move returns the command carma move.
func Move(a *cli.App) *cobra.Command {
	var q api.PinRequest
	cmd := &cobra.Command{
		Use:     "move [flags] TASK {GPU... | --any}",
		GroupID: cli.GroupTasks,
		Short:   "Say which GPUs a task goes to; a running one is stopped and moved",
		Long: `Say which GPUs a task goes to. A waiting task waits until these have room. A
running one is stopped, with --yes, and starts there from its beginning, or from
its own checkpoint; that costs none of its attempts. --any binds it to none.`,
		Example: `  carma move 20 1
  carma move --yes 17 2 3`,
		ValidArgsFunction: pick.Complete(false),
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return cli.Usagef("write for example: carma move 17 1", "no task named")
			case q.Any == (len(args) > 1):
				return cli.Usagef("carma gpus lists them", "name the GPUs that it is to go to, or --any")
			}
			return cli.NoEmpty(args)
		},
	}
	cmd.Flags().BoolVar(&q.Any, "any", false, "let it go to any GPU again")
	cmd.Flags().BoolVarP(&q.Stop, "yes", "y", false, "stop it if it runs elsewhere")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if q.GPUs, err = pick.GPUs(args[1:]); err != nil {
			return err
		}
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		ref, err := pick.Ref(cmd.Context(), client, args[0])
		if err != nil {
			return err
		}
		if _, err := client.Pin(cmd.Context(), ref, q); err != nil {
			return err
		}
		a.Println(ref)
		return nil
	}
	return cmd
}
