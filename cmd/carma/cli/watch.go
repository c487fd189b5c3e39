package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"carma/internal/units"
)

// leastWatch is the shortest interval between two tables.
const leastWatch = 200 * time.Millisecond

// WatchFlag adds --watch to a command that prints a table. The result is zero if the
// table is printed once.
func WatchFlag(cmd *cobra.Command) *time.Duration {
	every := new(time.Duration)
	f := cmd.Flags().VarPF(&Parsed[time.Duration]{To: every, Kind: "time", Parse: func(s string) (time.Duration, error) {
		d, err := units.ParseSpan(s)
		if err == nil && d < leastWatch {
			err = fmt.Errorf("%s is less than %s; write for example --watch=2s", s, leastWatch)
		}
		return d, err
	}}, "watch", "", "print it again and again, until Ctrl-C (default every 2s)")
	f.NoOptDefVal = "2s"
	return every
}

// Watch calls draw at an interval until Ctrl-C, which is no error. On a terminal each
// picture replaces the previous one; draw gets an app that prints into the picture. In a
// pipe the pictures follow each other, separated by empty lines. While no daemon answers,
// Watch waits for the next one.
func (a *App) Watch(ctx context.Context, every time.Duration, draw func(context.Context, *App) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals, release := StopSignals()
	defer release()
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	live := IsTerminal(a.Out)
	first, lost := true, false
	for ; ; first = false {
		var picture bytes.Buffer
		errs := a.Err
		if live {
			errs = &picture
		}
		err := draw(ctx, New(a.In, &picture, errs, a.Version))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (first || !Away(err)):
			return err
		case err != nil && live:
			_, err = fmt.Fprintf(a.Out, "\r\x1b[KThe daemon does not answer; what is above is old. Trying again.\r")
		case err != nil && !lost:
			a.Say("the daemon does not answer; trying again")
			lost, err = true, nil
		case err != nil:
			err = nil
		case live:
			err = a.repaint(first, picture.String())
		default:
			lost = false
			err = a.append(first, picture.Bytes())
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// append prints a picture after the previous ones.
func (a *App) append(first bool, picture []byte) error {
	if !first {
		picture = append([]byte("\n"), picture...)
	}
	_, err := a.Out.Write(picture)
	return err
}

// repaint replaces the previous picture, with at most as many lines as the terminal has.
func (a *App) repaint(first bool, picture string) error {
	lines := strings.Split(strings.TrimRight(picture, "\n"), "\n")
	width, height := 0, 0
	if f, ok := a.Out.(*os.File); ok {
		width, height, _ = term.GetSize(int(f.Fd()))
	}
	if room := height - 1; room > 1 && len(lines) > room { // one line is left for the cursor
		lines = append(lines[:room-1], fmt.Sprintf("and %d more lines; the window is too low", len(lines)-room+1))
	}
	var b strings.Builder
	if b.WriteString("\x1b[H"); first {
		b.WriteString("\x1b[2J")
	}
	for _, l := range lines {
		if width > 0 {
			l = Shorten(l, width)
		}
		b.WriteString(l + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	_, err := io.WriteString(a.Out, b.String())
	return err
}

// NoWatch refuses --watch together with a flag that excludes it.
func NoWatch(cmd *cobra.Command, others ...string) error {
	for _, other := range others {
		if cmd.Flags().Changed("watch") && cmd.Flags().Changed(other) {
			return Usagef("carma events --json tells of changes as they come", "--watch and --%s", other)
		}
	}
	return nil
}
