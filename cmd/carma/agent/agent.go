// Package agent contains the command carma agent: its flags and its help.
// containers/kubernetes/agent does the work; the program carma does not link it.
package agent

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/settings"
	"carma/configs/servers"
)

// Run runs the agent until ctx ends.
type Run func(ctx context.Context, config settings.Config, f Flags, log zerolog.Logger) error

// OldName returns the command under its first name. No list contains it.
func OldName(a *cli.App, run Run) *cobra.Command {
	cmd := Command(a, run)
	cmd.Use, cmd.Hidden, cmd.GroupID = strings.Replace(cmd.Use, "agent", "node", 1), true, ""
	return cmd
}

// Flags contains the flags of the command that are not settings.
type Flags struct {
	Name string // name of the node in the cluster
	// Server is the server whose GPUs are simulated, or empty for real GPUs.
	Server string
	// Kubelet, CDI and Dir are folders, and Speed is simulated time per wall-clock time.
	// They are for simulated GPUs only.
	Kubelet, CDI, Dir string
	Speed             float64
}

// Command returns the command carma agent. If run is nil, the process executes the
// program that contains the agent.
func Command(a *cli.App, run Run) *cobra.Command {
	var f Flags
	cmd := &cobra.Command{
		Use:     "agent [flags]",
		GroupID: cli.GroupServer,
		Short:   "Tell which tasks use how much of a Kubernetes node's GPUs",
		Long: `Run the agent of one node of a Kubernetes cluster: it reads the node's GPUs by
NVIDIA's driver (memory, activity, power, errors), finds out which pod each
process on them is of, and tells carma daemon --driver kubernetes. It changes
nothing on the node. It runs on the node itself, as root and in the machine's
own process numbers (hostPID in a pod), until SIGINT or SIGTERM; tasks go on.

With --simulate, for tests and demos, it pretends to have the GPUs of a server
and offers them to the cluster (a DRA driver named gpu.carma.dev).
docs/kubernetes.md says what a cluster needs.`,
		Example: `  carma agent --kubernetes-namespace lab
  carma agent --simulate dgx-h100 --kubeconfig /etc/kubernetes/carma.conf`,
		Args: cli.NoArgs,
	}
	host, _ := os.Hostname()
	settings.AddFlags(cmd.Flags(), "kubeconfig", "kubernetes-namespace", "dcgm-exporter", "log-level", "log-format")
	cmd.Flags().StringVar(&f.Server, "simulate", "", "the `server` whose GPUs the node pretends to have")
	cmd.Flags().StringVar(&f.Name, "name", cmp.Or(os.Getenv("NODE_NAME"), host), "the node's `name` in the cluster")
	cmd.Flags().Float64Var(&f.Speed, "speed", 1, "how much faster than the clock training goes")
	cmd.Flags().StringVar(&f.Kubelet, "kubelet", "/var/lib/kubelet", "the kubelet's `folder`")
	cmd.Flags().StringVar(&f.CDI, "cdi", "/var/run/cdi", "`folder` in which the container runtime looks for CDI files")
	cmd.Flags().StringVar(&f.Dir, "dir", "/run/carma/agent", "`folder` of the simulated GPUs' socket")
	cli.Complete(cmd, "simulate", cli.Words(servers.Names()))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		config, _, err := settings.Load(cmd.Flags())
		if err != nil {
			return err
		}
		if f.Server == "" {
			for _, name := range simulatedOnly {
				if cmd.Flags().Changed(name) {
					return cli.Usagef("write for example --simulate dgx-h100, or leave it out", "--%s is for simulated GPUs only", name)
				}
			}
		}
		if run == nil {
			return cli.BecomeKubernetes(cmd)
		}
		ctx, release := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer release()
		return run(ctx, config, f, cli.NewLogger(config, a.Err))
	}
	return cmd
}

// simulatedOnly lists the flags that have an effect only with --simulate.
var simulatedOnly = []string{"speed", "kubelet", "cdi", "dir"}
