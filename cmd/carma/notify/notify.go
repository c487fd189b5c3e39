// Package notify contains the command carma notify: the channels on which a user gets
// messages about tasks.
package notify

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/notifyfile"
	"carma/runner/api"
)

const long = `Show where messages about your tasks go, and how sending has gone since the
daemon's start. It first hands the file ~/.config/carma/notify.yaml to the
daemon, as carma run does: the daemon itself reads no files of yours. Nobody
else sees your channels.

  channels:
    phone:
      kind: webhook              # or slack, or mail
      url: https://ntfy.sh/a-topic-of-yours
      format: text               # default: json
      events: [failed, idle]     # default: finished, failed, recovered, idle, device
    me:
      kind: mail
      to: ada@example.org        # by the administrator's relay, or a server

Events: started, finished, failed, stopped, recovered, idle, device, suspended, resumed.
carma run --notify chooses others for one task. docs/monitoring.md has all keys.`

// Command returns the command carma notify with its subcommands.
func Command(a *cli.App) *cobra.Command {
	cmd := cli.Parent(&cobra.Command{
		Use:     "notify [flags] | notify COMMAND",
		GroupID: cli.GroupTasks,
		Short:   "Show where messages about tasks go: webhook, Slack, mail",
		Long:    long,
		Example: `  carma notify
  carma notify test phone
  carma run --notify failed:phone my/training:1`,
		ValidArgsFunction: cli.NoCompletion,
	}, test(a), forget(a))
	asJSON := cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return cli.Unknown(cmd, args...)
		}
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		v, known, err := hand(cmd, a, client)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.JSON(v)
		}
		return show(a, v, known)
	}
	return cmd
}

// hand sends the user's file to the daemon, and returns the resulting settings. known is
// false if there is no file.
func hand(cmd *cobra.Command, a *cli.App, client *api.Client) (v api.Notify, known bool, err error) {
	path := notifyfile.Path()
	s, known, err := notifyfile.Read(path, false)
	if err != nil {
		return v, known, cli.Usagef("", "%v", err)
	}
	if !known {
		v, err = client.Notify(cmd.Context())
		return v, false, err
	}
	if notifyfile.Open(path) {
		a.Say("others can read %s, and it may have passwords; write: chmod 600 %s", path, path)
	}
	v, err = client.SetNotify(cmd.Context(), s)
	return v, true, err
}

func show(a *cli.App, v api.Notify, known bool) error {
	if len(v.Channels)+len(v.Server) == 0 {
		a.Say("no channels: write %s, for example as carma notify --help shows it, then: carma notify test", cmp.Or(notifyfile.Path(), "notify.yaml"))
	} else if err := a.Print(table(&v, time.Now())); err != nil {
		return err
	}
	if !known && len(v.Channels) > 0 {
		a.Say("the daemon has your channels, and there is no %s; carma notify forget removes them", notifyfile.Path())
	}
	for _, c := range append(v.Channels, v.Server...) {
		if c.Error != "" {
			a.Say("%s failed %s ago: %s", c.Name, cli.Age(time.Since(c.Failed)), cli.Printable(c.Error))
		}
	}
	if v.Trouble != "" {
		a.Say("the administrator's channels are not in force: %s", cli.Printable(v.Trouble))
	}
	return nil
}

func table(v *api.Notify, now time.Time) *cli.Table {
	t := &cli.Table{Columns: []cli.Column{
		{Title: "CHANNEL"}, {Title: "KIND"}, {Title: "TO", Least: 12, Share: 1}, {Title: "EVENTS", Least: 12, Share: 1}, {Title: "SENT"}, {Title: "WAITING", Right: true}, {Title: "DROPPED", Right: true},
	}}
	add := func(list []api.NotifyState, of string) {
		for _, c := range list {
			sent := "-"
			if !c.Sent.IsZero() {
				sent = cli.Age(now.Sub(c.Sent)) + " ago"
			}
			t.Add(c.Name+of, c.Kind, c.To, strings.Join(c.Events, ","), sent, strconv.Itoa(c.Waiting), strconv.Itoa(c.Dropped))
		}
	}
	add(v.Channels, "")
	add(v.Server, " (server)")
	return t
}

func test(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test [flags] [CHANNEL]",
		Short: "Send a test message now, and say what came back",
		Long: `Send a test message to one of your channels, or to all, and say what the
receiver answered. Exit code 1: a channel failed.`,
		Example: `  carma notify test
  carma notify test phone`,
		ValidArgsFunction: channels(a),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("without a name it tests all", "one channel at a time, not %s and %s", args[0], args[1])
			}
			return nil
		},
	}
	server := cmd.Flags().Bool("server", false, "the administrator's channels; for administrators")
	asJSON := cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		if _, _, err := hand(cmd, a, client); err != nil {
			return err
		}
		ask := api.NotifyTest{Server: *server}
		if len(args) > 0 {
			if err := api.CheckNotifyName(args[0]); err != nil {
				return cli.Usagef("", "%v", err)
			}
			ask.Channel = args[0]
		}
		list, err := client.TestNotify(cmd.Context(), ask)
		if err != nil {
			return err
		}
		if *asJSON {
			err = a.JSON(list)
		} else {
			for _, c := range list {
				a.Printf("%s (%s): %s%s\n", c.Channel, c.Kind, map[bool]string{true: "sent; ", false: "failed: "}[c.OK], cli.Printable(c.Text))
			}
		}
		for _, c := range list {
			if err == nil && !c.OK {
				err = cli.CodeError(cli.ExitFailed)
			}
		}
		return err
	}
	return cmd
}

func forget(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "forget",
		Short: "Have the daemon forget your channels",
		Long: `Have the daemon forget your channels, and what waits to be sent to them. Your
file stays: remove or empty it as well, or carma run sends it again.`,
		Args: cli.NoArgs, ValidArgsFunction: cli.NoCompletion,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.Client(cmd)
			if err != nil {
				return err
			}
			if _, err := client.SetNotify(cmd.Context(), api.NotifySettings{Channels: []api.NotifyChannel{}}); err != nil {
				return err
			}
			a.Say("the daemon has no channels of yours")
			return nil
		},
	}
}

// channels completes the names of channels.
func channels(a *cli.App) cli.Completion {
	return func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		var names []string
		if client, err := a.Client(cmd); err == nil && len(args) == 0 {
			if v, err := client.Notify(cmd.Context()); err == nil {
				for _, c := range v.Channels {
					names = append(names, fmt.Sprintf("%s\t%s", c.Name, c.Kind))
				}
			}
		}
		return cli.Words(names)(cmd, args, start)
	}
}

// Wanted completes --notify: events and, after a colon, the user's channels.
func Wanted(a *cli.App) cli.Completion {
	return func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		events, _, named := strings.Cut(start, ":")
		var list []string
		if named {
			names, _ := channels(a)(cmd, nil, "")
			for _, n := range names {
				name, _, _ := strings.Cut(n, "\t")
				list = append(list, events+":"+name)
			}
			return cli.Words(list)(cmd, args, start)
		}
		begun := start[:strings.LastIndex(start, ",")+1]
		for _, e := range api.NotifyEvents {
			list = append(list, begun+e)
		}
		if begun == "" {
			list = append(list, "all", "none")
		}
		fit, _ := cli.Words(list)(cmd, args, start)
		return fit, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}
