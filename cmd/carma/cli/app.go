// Package cli contains the shared parts of carma's commands: output, errors, flags,
// tables, and the wait for a daemon that restarts. It contains no command.
package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"carma/cmd/carma/contexts"
	"carma/cmd/carma/dockerconfig"
	"carma/cmd/carma/settings"
	"carma/containers"
	"carma/runner/api"
)

// App contains the parts that all commands share.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	Version  string // of this program
	saying   sync.Mutex
}

// New returns the app with a program's streams and version.
func New(in io.Reader, out, err io.Writer, version string) *App {
	return &App{In: in, Out: out, Err: err, Version: version}
}

// Client returns the client of the configured daemon. It does not connect.
func (a *App) Client(cmd *cobra.Command) (*api.Client, error) {
	config, from, err := settings.Load(cmd.Flags())
	if err != nil {
		return nil, err
	}
	client, err := Connect(cmd, config, from)
	if err != nil {
		return nil, err
	}
	client.Stopping = func() { a.Say("the daemon is stopping; waiting for the next one") }
	client.Registries = func(images []string) map[string]containers.Credential {
		by, err := dockerconfig.Credentials(images)
		if err != nil {
			a.Say("%v; the image is fetched without it", err)
		}
		return by
	}
	return client, nil
}

// Connect returns the client of a command's daemon, for a configuration that was read
// before. It sends nothing yet.
func Connect(cmd *cobra.Command, config settings.Config, from settings.Origins) (*api.Client, error) {
	chosen, by, err := contexts.Choose(ContextFlag(cmd), config, from)
	if err != nil {
		return nil, Usagef("", "%v", err)
	}
	if chosen.Remote() && contexts.OverTLS == nil {
		return nil, BecomeKubernetes(cmd)
	}
	client, err := chosen.Connect()
	if err != nil {
		return nil, Usagef("docs/kubernetes.md says how a daemon is reached over TLS", "daemon %s (chosen by %s): %v", chosen.Name, by, err)
	}
	return client, nil
}

// ContextFlag returns the value of --context, or "".
func ContextFlag(cmd *cobra.Command) string {
	if f := cmd.Flags().Lookup("context"); f != nil {
		return f.Value.String()
	}
	return ""
}

// JSON prints a value as indented JSON.
func (a *App) JSON(v any) error {
	e := json.NewEncoder(a.Out)
	e.SetIndent("", "    ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Say prints one line about carma's actions, on stderr.
func (a *App) Say(format string, args ...any) {
	a.saying.Lock()
	defer a.saying.Unlock()
	fmt.Fprintf(a.Err, "carma: "+format+"\n", args...)
}

// Println prints a line of a command's result, as fmt.Println.
func (a *App) Println(args ...any) { fmt.Fprintln(a.Out, args...) }

// Printf prints a command's result, as fmt.Printf.
func (a *App) Printf(format string, args ...any) { fmt.Fprintf(a.Out, format, args...) }

// Print prints a table as wide as the terminal.
func (a *App) Print(t *Table) error { return t.Write(a.Out, WidthOf(a.Out)) }

// Warn prints warnings, a line each.
func (a *App) Warn(warnings []string) {
	for _, w := range warnings {
		a.Say("%s", Printable(w))
	}
}
