package tasks

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/runner/api"
)

// Port returns the command carma port.
func Port(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "port TASK [PORT[/tcp|/udp]]",
		GroupID: cli.GroupTasks,
		Short:   "Print where the open ports of a running task are",
		Long: `Print where the ports of a running task are open on this machine (carma run -p),
a line each; with a port, only its address. Nothing outside this machine reaches
them; from elsewhere: ssh -L 8888:127.0.0.1:49153 server. On a cluster there are
none, and kubectl port-forward reaches a pod's.`,
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
		if len(task.Ports) == 0 {
			if info, err := client.Info(cmd.Context()); err == nil && info.Driver == "kubernetes" {
				return onNode(&task, args)
			}
			if task, err = untilOpen(cmd.Context(), client, ref, task); err != nil {
				return err
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

// untilOpen asks for a running task again until its ports are known, for at most five seconds:
// the daemon learns them from the engine after a container has started, and again after the
// daemon itself was restarted.
func untilOpen(ctx context.Context, client *api.Client, ref string, task api.Task) (api.Task, error) {
	limit := time.After(5 * time.Second)
	for task.Phase == "running" && len(task.Submit.Ports) > 0 && len(task.Ports) == 0 {
		select {
		case <-ctx.Done():
			return task, ctx.Err()
		case <-limit:
			return task, nil
		case <-time.After(100 * time.Millisecond):
		}
		var err error
		if task, err = client.Task(ctx, ref); err != nil {
			return task, err
		}
	}
	return task, nil
}

// onNode refuses to show a port of a task of a cluster, and explains how to reach it.
func onNode(t *api.Task, args []string) error {
	port := "8888"
	if len(args) == 2 {
		port, _, _ = strings.Cut(args[1], "/")
	}
	const why = "task %s opens no port on this machine: its pod runs on a node of the cluster"
	namespace, job, ofJob := strings.Cut(t.Name, "/") // no other name has a slash
	last := cli.LastAttempt(t)
	switch {
	case ofJob:
		return cli.Usagef(fmt.Sprintf("write kubectl port-forward -n %s job/%s %s", namespace, job, port), why, args[0])
	case last == nil || t.Finished():
		return cli.Usagef(fmt.Sprintf("when it runs, kubectl port-forward reaches its pod; it is %s", t.Phase), why, args[0])
	}
	return cli.Usagef(fmt.Sprintf("write kubectl port-forward -n %s pod/%s %s", t.Submit.Namespace, last.Container, port), why, args[0])
}
