package tasks

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/internal/suggest"
	"carma/runner/api"
)

// tellLife prints the history of the named task.
func tellLife(a *cli.App, cmd *cobra.Command, args []string, asJSON bool) error {
	if len(args) > 1 {
		return cli.Usagef("carma history --help", "one task at a time: %s", strings.Join(args, " "))
	}
	var odd string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "json" && cmd.InheritedFlags().Lookup(f.Name) == nil {
			odd = f.Name
		}
	})
	if odd != "" {
		return cli.Usagef("leave it out, or leave out the task", "--%s is for lists of tasks", odd)
	}
	client, err := a.Client(cmd)
	if err != nil {
		return err
	}
	ref, err := pick.Ref(cmd.Context(), client, args[0])
	if err != nil {
		return err
	}
	life, err := client.History(cmd.Context(), ref)
	if status, is := errors.AsType[*api.StatusError](err); is && status.Status == http.StatusNotFound && len(suggest.Near(args[0], []string{"verify"})) > 0 {
		return cli.Unknown(cmd, args[0])
	}
	if err != nil {
		return err
	}
	if asJSON {
		return a.JSON(life)
	}
	task, err := client.Task(cmd.Context(), ref)
	if err != nil {
		return err
	}
	a.Printf("%s", LifeText(&life, &task))
	return nil
}

// LifeText returns the output of carma history TASK.
func LifeText(h *api.History, t *api.Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "task %d (%s)\n", t.ID, cli.Printable(t.Name))
	if h.Gone {
		fmt.Fprintln(&b, "the journal does not reach back to its submission")
	}
	for i, l := range h.Lines {
		if h.LeftOut > 0 && i == h.Gap {
			fmt.Fprintf(&b, "  ... %d lines in between are left out\n", h.LeftOut)
		}
		attempt := ""
		if l.Attempt > 0 {
			attempt = fmt.Sprintf("attempt %d: ", l.Attempt)
		}
		fmt.Fprintf(&b, "  %s  %s%s\n", l.At.Local().Format(time.DateTime), attempt, cli.Printable(l.Text))
	}
	if h.Waits != "" {
		fmt.Fprintf(&b, "waits now: %s\n", cli.Printable(h.Waits))
	}
	if u := h.Unread; u != nil {
		fmt.Fprintf(&b, "the journal is long: from %s to %s it was not looked through\n", u.From.Local().Format(time.DateTime), u.Until.Local().Format(time.DateTime))
	}
	return b.String()
}
