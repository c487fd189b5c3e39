package contexts

import (
	"fmt"
	"os"
	"slices"

	"carma/cmd/carma/settings"
)

// Environment variables that select a daemon, besides CARMA_SOCKET.
const (
	// HostVariable contains an address, see [ParseHost].
	HostVariable = "CARMA_HOST"
	// CAVariable names the file with the CA of that address, if no context has it.
	CAVariable = "CARMA_CA"
)

// Choose returns the daemon for a command, and what selected it: the flags, then
// CARMA_HOST, then CARMA_SOCKET, then the current context, then the configuration. A
// context named Local with a Host is a socket. name is the flag --context; config and
// from are the configuration, including the flag --socket.
func Choose(name string, config settings.Config, from settings.Origins) (c Context, by string, err error) {
	local := Context{Name: Local, Host: "unix://" + settings.ClientSocket(config, from)}
	socket := from["socket"].Kind
	l, err := Read()
	if err != nil && name != Local {
		return c, "", err
	}
	host := os.Getenv(HostVariable)
	switch {
	case name != "" && socket == settings.FromFlag:
		return c, "", fmt.Errorf("--context and --socket name two daemons; leave one out")
	case name == Local:
		return local, "--context", nil
	case name != "":
		c, err = l.Find(name)
		return c, "--context", err
	case socket == settings.FromFlag:
		return local, "--socket", nil
	case host != "":
		c, err = l.at(host)
		return c, HostVariable, err
	case socket == settings.FromEnv:
		return local, "CARMA_SOCKET", nil
	case l.Current != "" && l.Current != Local:
		c, err = l.Find(l.Current)
		if err != nil {
			err = fmt.Errorf("the current context is gone: %w; carma context use chooses another", err)
		}
		return c, "carma context use", err
	}
	return local, "the configuration", nil
}

// at returns the context with an address, or a context made from the environment.
func (l List) at(host string) (Context, error) {
	_, address, err := ParseHost(host)
	if err != nil {
		return Context{}, fmt.Errorf("%s: %w", HostVariable, err)
	}
	if i := slices.IndexFunc(l.Contexts, func(c Context) bool { _, a, _ := ParseHost(c.Host); return a != "" && a == address }); i >= 0 && os.Getenv(CAVariable) == "" {
		return l.Contexts[i], nil
	}
	c := Context{Name: host, Host: host}
	if address != "" {
		c.CA = os.Getenv(CAVariable)
	}
	return c, nil
}
