// Package web contains the command carma web: it signs its user in to the daemon's page
// and opens it.
package web

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/runner/api"
)

// Command returns the command carma web.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "web [flags]",
		GroupID: cli.GroupServer,
		Short:   "Open the page: GPUs, queue, tasks and their output in a browser",
		Long: `Print an address that signs you in to the daemon's page, and open it where there
is a browser. It works once, for you alone, for 5 minutes; then the browser is
signed in for 12 hours. What you may see and do there is what the command line
lets you.

From a laptop, run the ssh command that is printed there, then open the address
there. The daemon serves the page on a socket, which ssh reaches; on a port of
this machine only with its setting web: 127.0.0.1:PORT.`,
		Example: `  carma web
  carma web --print`,
		Args: cli.NoArgs,
	}
	printOnly := cmd.Flags().Bool("print", false, "print the address, open nothing; in a pipe that is one line")
	port := cmd.Flags().Uint16("port", 7070, "`port` of the laptop, for the ssh command")
	asJSON := cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *port == 0 {
			return cli.Usagef("write for example --port 7070", "--port: 0 is not a port")
		}
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		login, err := client.Web(cmd.Context())
		if err != nil {
			return err
		}
		if *asJSON {
			return a.JSON(login)
		}
		print(a, login, *port, time.Now())
		if !*printOnly && login.Address != "" {
			open(a, pageURL(login.Address, login.Ticket))
		}
		return nil
	}
	return cmd
}

// pageURL returns the page's address. Browsers do not send the part after # to the server.
func pageURL(at, ticket string) string { return "http://" + at + "/#login=" + ticket }

// print prints the page's address on this machine, and how to open the page on a laptop.
// In a pipe, standard output gets only one line: the address on this machine, or else the
// address on the laptop. The rest goes to standard error.
func print(a *cli.App, login api.WebLogin, port uint16, now time.Time) {
	to, laptop := login.Socket, pageURL(net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))), login.Ticket)
	if login.Address != "" {
		a.Println(pageURL(login.Address, login.Ticket))
	}
	if to == "" {
		to = login.Address
	}
	words := a.Out
	if !cli.IsTerminal(a.Out) {
		words = a.Err
	}
	fmt.Fprintf(words, "from a laptop: ssh -N -o ExitOnForwardFailure=yes -L %d:%s %s\n", port, to, here())
	fmt.Fprintf(words, "  then there:  %s\n", laptop)
	if words == a.Err && login.Address == "" {
		a.Println(laptop)
	}
	if login.Note != "" {
		a.Say("not served at %s", cli.Printable(login.Note))
	}
	a.Say("the address signs you in once, within %.0f minutes", login.Ends.Sub(now).Minutes())
}

// here returns the destination for ssh: this user at this machine.
func here() string {
	host, err := os.Hostname()
	if err != nil {
		host = "SERVER"
	}
	if me, err := user.Current(); err == nil && me.Username != "" {
		return me.Username + "@" + host
	}
	return host
}

// open opens an address in the browser: BROWSER, or the desktop's, if there is one.
func open(a *cli.App, address string) {
	program := os.Getenv("BROWSER")
	if program == "" && cmp.Or(os.Getenv("WAYLAND_DISPLAY"), os.Getenv("DISPLAY")) != "" {
		program = "xdg-open"
	}
	if program == "" {
		return
	}
	words := strings.Fields(program)
	if len(words) == 0 {
		return
	}
	// The browser's output is discarded, because it would mix with the address.
	browser := exec.Command(words[0], append(words[1:], address)...)
	if err := browser.Start(); err != nil {
		a.Say("no browser could be opened: %v; open the address by hand", err)
		return
	}
	_ = browser.Process.Release()
}
