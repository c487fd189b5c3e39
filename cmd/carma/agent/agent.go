// Package agent is carma agent: the agent of one machine of a cluster. It reads the
// machine's GPUs, finds out which task each process on them is of, and tells the daemon.
// For tests and demos it simulates the GPUs, offers them to the cluster by a DRA driver
// and gives pods what they need to use them.
package agent

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"carma/cmd/carma/cards"
	"carma/cmd/carma/cli"
	"carma/configs"
	"carma/configs/servers"
	"carma/containers/kubernetes"
)

// OldName is the command by the name that it had first. No list has it.
func OldName(a *cli.App) *cobra.Command {
	cmd := Command(a)
	cmd.Use, cmd.Hidden, cmd.GroupID = strings.Replace(cmd.Use, "agent", "node", 1), true, ""
	return cmd
}

// flags are those of the command.
type flags struct {
	name, server, kubelet, cdi, dir string
	speed                           float64
}

// Command is carma agent.
func Command(a *cli.App) *cobra.Command {
	var f flags
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
	configs.AddFlags(cmd.Flags(), "kubeconfig", "kubernetes-namespace", "dcgm-exporter", "log-level", "log-format")
	cmd.Flags().StringVar(&f.server, "simulate", "", "the `server` whose GPUs the node pretends to have")
	cmd.Flags().StringVar(&f.name, "name", cmp.Or(os.Getenv("NODE_NAME"), host), "the node's `name` in the cluster")
	cmd.Flags().Float64Var(&f.speed, "speed", 1, "how much faster than the clock training goes")
	cmd.Flags().StringVar(&f.kubelet, "kubelet", "/var/lib/kubelet", "the kubelet's `folder`")
	cmd.Flags().StringVar(&f.cdi, "cdi", "/var/run/cdi", "`folder` in which the container runtime looks for CDI files")
	cmd.Flags().StringVar(&f.dir, "dir", "/run/carma/agent", "`folder` of the simulated GPUs' socket")
	cli.Complete(cmd, "simulate", cli.Words(servers.Names()))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		config, _, err := configs.Load(cmd.Flags())
		if err != nil {
			return err
		}
		if f.server == "" {
			for _, name := range simulatedOnly {
				if cmd.Flags().Changed(name) {
					return cli.Usagef("write for example --simulate dgx-h100, or leave it out", "--%s is for simulated GPUs only", name)
				}
			}
		}
		ctx, release := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer release()
		return run(ctx, config, f, cli.NewLogger(config, a.Err))
	}
	return cmd
}

// simulatedOnly are the flags that mean something with --simulate only.
var simulatedOnly = []string{"speed", "kubelet", "cdi", "dir"}

// run tells what the node's GPUs show until ctx ends.
func run(ctx context.Context, config configs.Config, f flags, log zerolog.Logger) (err error) {
	var server servers.Server
	if f.server != "" {
		if server, err = f.check(); err != nil {
			return err
		}
	}
	d, err := kubernetes.New(kubernetes.Options{Kubeconfig: config.Kubeconfig, Namespace: config.KubernetesNamespace})
	if err != nil {
		return cli.Usagef("say where it is: --kubeconfig FILE", "%v", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if f.server != "" {
		return simulate(ctx, d, server, f, log)
	}
	source, err := cards.Open(ctx, cards.Options{DCGMExporter: config.DCGMExporter, Every: lookEvery, Log: log})
	if none, ok := errors.AsType[*cards.NoDriver](err); ok {
		return cli.Usagef("install the NVIDIA driver, or pretend: carma agent --simulate "+servers.Default, "%s", none.What)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	devices, err := source.GPUs(ctx)
	if err != nil {
		return err
	}
	t := newTeller(d, f.name, source, log)
	if err := t.remember(ctx); err != nil {
		return err
	}
	log.Info().Str("node", f.name).Int("gpus", len(devices)).Str("source", source.Name()).Msg("the node's GPUs are watched")
	t.run(ctx)
	return nil
}
