package top

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/runner/api"
)

const long = `Without tasks: watch the GPUs, the running tasks and the queue, live, in this
terminal. Keys show output and reasons, and stop, hold or suspend tasks; ? lists
them, q quits. Clicks choose and sort, the wheel scrolls; --mouse=false, or the
key M, leaves the mouse to the terminal, so that it selects text. It needs 80x24 cells or more, and works over ssh and without
colours (NO_COLOR). In a pipe, or on a terminal that cannot move its cursor,
there are carma ps --watch and carma gpus --watch.

With tasks, as always: `

// Command returns the command carma top: the live view or, with tasks, the same as move.
func Command(a *cli.App, move *cobra.Command) *cobra.Command {
	interval := 2 * time.Second
	move.Use = "top [flags] [TASK... | --mine | --group NAME]"
	move.Short = "Watch GPUs, tasks and queue live; with tasks: move them first"
	move.Long = long + strings.ToLower(move.Long[:1]) + move.Long[1:]
	move.Example = `  carma top
  carma top 17; carma top --group exp`
	cli.TimeFlag(move.Flags(), &interval, "interval", "", "the time between two looks of the live view")
	mouse := move.Flags().Bool("mouse", true, "clicks and the wheel work in the live view")
	args, run := move.Args, move.RunE
	move.Args = func(cmd *cobra.Command, words []string) error {
		if len(words) == 0 && pick.Given(cmd) == "" {
			return nil
		}
		if cmd.Flags().Changed("interval") {
			return cli.Usagef("leave it out, or the tasks", "--interval is for the live view, which names no tasks")
		}
		if cmd.Flags().Changed("mouse") {
			return cli.Usagef("leave it out, or the tasks", "--mouse is for the live view, which names no tasks")
		}
		return args(cmd, words)
	}
	move.RunE = func(cmd *cobra.Command, words []string) error {
		if len(words) > 0 || pick.Given(cmd) != "" {
			return run(cmd, words)
		}
		return watch(cmd, a, interval, *mouse)
	}
	return move
}

// leastInterval is the shortest interval, so that a view does not keep the daemon busy.
const leastInterval = 200 * time.Millisecond

// watch shows the live view until it is quit.
func watch(cmd *cobra.Command, a *cli.App, interval time.Duration, mouse bool) error {
	if interval < leastInterval {
		return cli.Usagef("write for example --interval 2s", "--interval %s is less than %s", interval, leastInterval)
	}
	if err := suits(a); err != nil {
		return err
	}
	client, err := a.Client(cmd)
	if err != nil {
		return err
	}
	if _, err := client.Info(cmd.Context()); err != nil {
		return err // before the screen is switched
	}
	client.Stopping = nil // a line on stderr would disturb the picture
	return show(cmd.Context(), a, client, interval, mouse)
}

// suits refuses an output that is not a terminal suitable for a live view.
func suits(a *cli.App) error {
	const instead = "carma ps and carma gpus print tables, with --watch again and again; to move a task to the front, name it: carma top 17"
	if t := os.Getenv("TERM"); t == "" || t == "dumb" {
		if cli.OnTerminal(a.Out) {
			return cli.Usagef(instead, "the live view needs a terminal that can move its cursor, and TERM is %q", t)
		}
	}
	if !cli.OnTerminal(a.Out) || !cli.OnTerminal(a.In) {
		return cli.Usagef(instead, "no task named, and the live view needs a terminal")
	}
	return nil
}

// frames is the largest number of times per second that the screen is drawn.
const frames = 15

func show(ctx context.Context, a *cli.App, client *api.Client, interval time.Duration, mouse bool) error {
	uid, err := client.UID(ctx)
	if err != nil {
		return err
	}
	m := newModel(client, time.Now, uid, glyphsOf(os.Getenv))
	m.mouse = mouse
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(a.In), tea.WithOutput(a.Out), tea.WithFPS(frames))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.feed = newFeed(client, interval, program.Send)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.feed.run(ctx)
	}()
	_, err = program.Run()
	cancel()
	<-ended
	if errors.Is(err, tea.ErrInterrupted) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// glyphsOf returns the characters that the locale supports.
func glyphsOf(env func(string) string) *glyphs {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(env(name)); v != "" {
			if strings.Contains(v, "utf-8") || strings.Contains(v, "utf8") {
				return &unicodeGlyphs
			}
			return &asciiGlyphs
		}
	}
	return &asciiGlyphs
}
