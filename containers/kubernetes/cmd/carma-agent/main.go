// Command carma-agent is a program that contains only the command carma agent, and so needs
// less memory on each node than carma-kubernetes. The command carma-kubernetes agent executes
// carma-agent if that lies in the same folder ([agent.Apart]). Usage:
//
//	carma-agent agent [flags]
//	carma-agent --version      the version, alone
package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	command "carma/cmd/carma/agent"
	"carma/cmd/carma/cli"
	"carma/cmd/carma/settings"
	"carma/containers/kubernetes/agent"
)

// version is set by the linker.
var version = "dev"

func main() {
	if slices.Equal(os.Args[1:], []string{"--version"}) {
		fmt.Println(version)
		return
	}
	a := cli.New(os.Stdin, os.Stdout, os.Stderr, version)
	cmd, err := newRoot(a).ExecuteContextC(context.Background())
	os.Exit(a.Report(cmd, err))
}

// newRoot returns a command with carma's name and all flags of its commands, because carma
// passes its own arguments on unchanged.
func newRoot(a *cli.App) *cobra.Command {
	root := cli.Parent(&cobra.Command{
		Use: "carma COMMAND", Short: "The agent of a Kubernetes node",
		SilenceErrors: true, SilenceUsage: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}, command.Command(a, agent.Run), command.OldName(a, agent.Run))
	root.AddGroup(cli.Groups()...)
	settings.AddFlags(root.PersistentFlags(), "socket")
	root.PersistentFlags().String("context", "", "`name` of the daemon to ask")
	root.PersistentFlags().String("config", "", "read this configuration `file` and no other")
	return root
}
