package server

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/contexts"
	"carma/cmd/carma/settings"
	"carma/internal/lazyregexp"
)

// Context returns the command carma context.
func Context(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "context",
		GroupID: cli.GroupServer,
		Short:   "Choose the daemon that commands are for",
		Long: `Choose the daemon that commands are for: this machine's, or a cluster's.

A context is a daemon's address and what tells who you are there: over TLS, the
token of a kubeconfig. The one called local is this machine's daemon.

What chooses, first to last: --context or --socket, CARMA_HOST
(https://host:port or unix:///path; CARMA_CA names the authority's file),
CARMA_SOCKET, carma context use, the key socket of the configuration. Contexts
are kept in ~/.config/carma/contexts.yaml.`,
		Example: `  carma context add lab --host https://carma.lab:7443 --ca ca.crt
  carma context use lab
  carma ps --context local`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return listContexts(a, cmd, false) },
	}
	cmd.AddCommand(contextList(a), contextUse(a), contextAdd(a), contextRemove(a))
	return cmd
}

// ContextNames completes the name of a context.
func ContextNames(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	l, _ := contexts.Read() // an invalid file completes nothing
	return cli.Words(l.Names())(cmd, args, start)
}

func contextList(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{Use: "list [flags]", Aliases: []string{"ls"}, Short: "List the daemons that commands can be for, and which is chosen", Args: cli.NoArgs}
	asJSON := cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return listContexts(a, cmd, *asJSON) }
	return cmd
}

func listContexts(a *cli.App, cmd *cobra.Command, asJSON bool) error {
	config, from, err := settings.Load(cmd.Flags())
	if err != nil {
		return err
	}
	l, err := contexts.Read()
	if err != nil {
		return cli.Usagef("", "%v", err)
	}
	chosen, by, err := contexts.Choose(cli.ContextFlag(cmd), config, from)
	if err != nil {
		return cli.Usagef("", "%v", err)
	}
	all := append([]contexts.Context{{Name: contexts.Local, Host: "unix://" + settings.ClientSocket(config, from)}}, l.Contexts...)
	if !slices.ContainsFunc(all, func(c contexts.Context) bool { return c.Name == chosen.Name }) {
		all = append(all, chosen)
	}
	type row struct {
		contexts.Context
		Chosen string `json:"chosen_by,omitempty"`
	}
	var rows []row
	t := &cli.Table{Columns: []cli.Column{{Title: "NAME"}, {Title: "DAEMON"}, {Title: "TOKEN"}, {Title: "NAMESPACE"}, {Title: "CHOSEN BY"}}}
	for _, c := range all {
		r := row{Context: c}
		if c.Name == chosen.Name {
			r.Chosen = by
		}
		rows = append(rows, r)
		t.Add(c.Name, c.Host, tokenText(c), c.Namespace, r.Chosen)
	}
	if asJSON {
		return a.JSON(rows)
	}
	return a.Print(t)
}

// tokenText describes the source of a context's token.
func tokenText(c contexts.Context) string {
	switch {
	case strings.HasPrefix(c.Host, "unix:"):
		return "none: the kernel tells"
	case c.TokenFile != "":
		return c.TokenFile
	}
	text := c.Kubeconfig
	if text == "" {
		text = "as kubectl"
	}
	if c.KubeContext != "" {
		text += ", context " + c.KubeContext
	}
	return text
}

func contextUse(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "use NAME", Short: "Let commands be for this daemon from now on", Args: oneContext,
		ValidArgsFunction: ContextNames,
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := contexts.Read()
			if err != nil {
				return cli.Usagef("", "%v", err)
			}
			if _, err := l.Find(args[0]); err != nil {
				return cli.Usagef("carma context list shows them", "%v", err)
			}
			if l.Current = args[0]; l.Current == contexts.Local {
				l.Current = ""
			}
			if err := l.Write(); err != nil {
				return err
			}
			for _, name := range []string{contexts.HostVariable, "CARMA_SOCKET"} {
				if os.Getenv(name) != "" {
					a.Say("%s is set in this shell and wins over this choice", name)
				}
			}
			return nil
		},
	}
	return cmd
}

var contextName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

func contextAdd(*cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "add NAME --host https://HOST:PORT [flags]", Short: "Add a daemon, or change one that was added",
		Long: `Add a daemon, or change one that was added.

The token is that of a kubeconfig (a token, a file, or a plugin that gets one),
in a pod the service account's. Nothing is asked of the daemon yet.`,
		Example: `  carma context add lab --host https://carma.lab:7443 --ca ca.crt
  carma context add lab --host https://carma.lab:7443 --kubeconfig ~/lab.yaml`,
		Args: oneContext,
	}
	var c contexts.Context
	flags := cmd.Flags()
	flags.StringVar(&c.Host, "host", "", "its `address`: https://host:port, or unix:///path of a socket")
	flags.StringVar(&c.CA, "ca", "", "`file` with the authority of its certificate (default: the system's)")
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "`file` with your token (default: as kubectl finds it)")
	flags.StringVar(&c.KubeContext, "kube-context", "", "`context` of that kubeconfig (default: its current one)")
	flags.StringVar(&c.TokenFile, "token-file", "", "`file` with your token alone, in place of a kubeconfig")
	flags.StringVar(&c.Namespace, "namespace", "", "`namespace` of tasks that name none (default: the kubeconfig's)")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		c.Name = args[0]
		switch {
		case c.Name == contexts.Local:
			return cli.Usagef("choose another name", "local is always this machine's daemon")
		case !contextName().MatchString(c.Name):
			return cli.Usagef("letters, digits, dots, dashes and underscores, at most 63", "%q is no name for a context", c.Name)
		case c.Host == "":
			return cli.Usagef("write for example --host https://carma.lab:7443", "--host is missing")
		}
		for name, path := range map[string]*string{"ca": &c.CA, "kubeconfig": &c.Kubeconfig, "token-file": &c.TokenFile} {
			if err := absoluteFile(name, path); err != nil {
				return err
			}
		}
		if err := c.Check(); err != nil {
			return cli.Usagef("", "%v", err)
		}
		l, err := contexts.Read()
		if err != nil {
			return cli.Usagef("", "%v", err)
		}
		l.Contexts = slices.DeleteFunc(l.Contexts, func(old contexts.Context) bool { return old.Name == c.Name })
		l.Contexts = append(l.Contexts, c)
		return l.Write()
	}
	return cmd
}

// absoluteFile makes a path from a flag absolute; the file must exist.
func absoluteFile(flag string, path *string) error {
	if *path == "" {
		return nil
	}
	full, err := filepath.Abs(*path)
	if err == nil {
		_, err = os.Stat(full)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return cli.Usagef("", "--%s: there is no file %s", flag, *path)
	}
	*path = full
	return err
}

func contextRemove(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "remove NAME...", Aliases: []string{"rm"}, Short: "Forget daemons that were added", Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("carma context list shows them", "name a context")
			}
			return nil
		},
		ValidArgsFunction: ContextNames,
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := contexts.Read()
			if err != nil {
				return cli.Usagef("", "%v", err)
			}
			for _, name := range args {
				if name == contexts.Local {
					return cli.Usagef("leave it out", "local is this machine's daemon and stays")
				}
				if _, err := l.Find(name); err != nil {
					return cli.Usagef("carma context list shows them", "%v", err)
				}
			}
			current := l.Current
			for _, name := range args {
				l.Contexts = slices.DeleteFunc(l.Contexts, func(c contexts.Context) bool { return c.Name == name })
				if l.Current == name {
					l.Current = ""
				}
			}
			if err := l.Write(); err != nil {
				return err
			}
			if l.Current != current {
				a.Say("commands are for this machine's daemon again")
			}
			return nil
		},
	}
	return cmd
}

// oneContext checks that one context is named.
func oneContext(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return cli.Usagef("write for example lab", "name a context")
	case 1:
		return nil
	}
	return cli.Usagef("it takes one context", "unexpected argument %q", args[1])
}
