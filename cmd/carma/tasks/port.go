package tasks

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
)

// Port is carma port.
func Port(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "port TASK [PORT[/tcp|/udp]]",
		GroupID: cli.GroupTasks,
		Short:   "Print where the open ports of a running task are",
		Long: `Print where the ports of a running task are open on this machine (carma run -p),
a line each; with a port, only its address. Nothing outside this machine reaches
them; from elsewhere: ssh -L 8888:127.0.0.1:49153 server.`,
		Example: `  carma port 17
  carma port 17 8888`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return cli.Usagef("write for example: carma port 17", "%d arguments; a task, and one of its ports or none", len(args))
			}
			return cli.NoEmpty(args)
		},
		ValidArgsFunction: pick.Complete(false),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		ref, err := pick.Ref(cmd.Context(), client, args[0])
		if err != nil {
			return err
		}
		task, err := client.Task(cmd.Context(), ref)
		if err != nil {
			return err
		}
		wanted := ""
		if len(args) == 2 {
			if wanted = args[1]; !strings.Contains(wanted, "/") {
				wanted += "/tcp"
			}
		}
		found := false
		for _, p := range task.Ports {
			switch {
			case wanted == "":
				a.Println(p.Port + " -> " + p.Address)
			case wanted == p.Port:
				a.Println(p.Address)
			default:
				continue
			}
			found = true
		}
		switch {
		case found:
			return nil
		case len(task.Submit.Ports) == 0:
			return fmt.Errorf("task %s opens no port; submit it with -p 8888", args[0])
		case len(task.Ports) == 0:
			return fmt.Errorf("task %s has no open ports: it is %s", args[0], task.Phase)
		}
		return fmt.Errorf("task %s does not open port %s; it opens %s", args[0], wanted, strings.Join(task.Submit.Ports, ", "))
	}
	return cmd
}
