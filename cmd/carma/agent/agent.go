// Package agent is carma agent: the agent of one machine of a cluster. It simulates the
// machine's GPUs, offers them to the cluster by a DRA driver, gives pods what they need
// to use them, and tells the daemon what they show.
package agent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/configs"
	"carma/configs/nearest"
	"carma/configs/servers"
	"carma/containers"
	"carma/containers/kubernetes"
	"carma/containers/kubernetes/simgpus"
	"carma/runner/cluster"
	"carma/runner/gpu"
	"carma/runner/gpu/simgpu"
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
		Use:     "agent --simulate SERVER [flags]",
		GroupID: cli.GroupServer,
		Short:   "Offer simulated GPUs of a Kubernetes node, and tell what they do",
		Long: `Run the agent of one node of a Kubernetes cluster, for tests and demos: it
simulates the GPUs of a server, offers them to the cluster (a DRA driver named
gpu.carma.dev), and tells carma daemon --driver kubernetes which task uses how
much of them. It runs on the node itself, as root, until SIGINT or SIGTERM; the
pods go on. docs/kubernetes.md says what a cluster needs.

For GPUs of NVIDIA's driver there is no agent yet; see docs/kubernetes.md.`,
		Example: `  carma agent --simulate dgx-h100 --kubeconfig /etc/kubernetes/carma.conf`,
		Args:    cli.NoArgs,
	}
	host, _ := os.Hostname()
	configs.AddFlags(cmd.Flags(), "kubeconfig", "kubernetes-namespace", "log-level", "log-format")
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
		ctx, release := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer release()
		return run(ctx, config, f, logger(config, a.Err))
	}
	return cmd
}

func logger(config configs.Config, w io.Writer) zerolog.Logger {
	if config.LogFormat == "console" || config.LogFormat == "auto" && cli.IsTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w, NoColor: !cli.IsTerminal(w), TimeFormat: "15:04:05.000"}
	}
	level, err := zerolog.ParseLevel(config.LogLevel)
	if err != nil {
		level = zerolog.InfoLevel // configs has checked it
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger()
}

// simFolder is where a pod finds the simulated GPUs' socket.
const simFolder = "/run/carma-sim"

// check refuses flags that cannot be.
func (f *flags) check() (servers.Server, error) {
	if f.server == "" {
		return servers.Server{}, cli.Usagef("write for example --simulate dgx-h100", "no server is named whose GPUs the node pretends to have")
	}
	if err := nearest.OneOf(f.server, servers.Names()); err != nil {
		return servers.Server{}, cli.Usagef("", "--simulate: %v", err)
	}
	if !(f.speed > 0 && f.speed <= 100_000) {
		return servers.Server{}, cli.Usagef("", "--speed %v is not above 0 and at most 100000", f.speed)
	}
	for _, dir := range []string{f.kubelet, f.cdi, f.dir} {
		if !filepath.IsAbs(dir) {
			return servers.Server{}, cli.Usagef("", "%q is not an absolute path", dir)
		}
	}
	server, err := servers.Find(f.server)
	return ofNode(server, f.name), err
}

// ofNode gives the GPUs of a server names of their own: two nodes may pretend to be
// the same server.
func ofNode(s servers.Server, node string) servers.Server {
	gpus := append([]servers.GPU{}, s.GPUs...)
	for i := range gpus {
		b := sha256.Sum256([]byte(node + " " + gpus[i].UUID))
		gpus[i].UUID = fmt.Sprintf("GPU-%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
	}
	s.GPUs = gpus
	return s
}

// run offers the GPUs until ctx ends.
func run(ctx context.Context, config configs.Config, f flags, log zerolog.Logger) (err error) {
	server, err := f.check()
	if err != nil {
		return err
	}
	d, err := kubernetes.New(kubernetes.Options{Kubeconfig: config.Kubeconfig, Namespace: config.KubernetesNamespace})
	if err != nil {
		return cli.Usagef("say where it is: --kubeconfig FILE", "%v", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	began := time.Now()
	clock := func() time.Time { return began.Add(time.Duration(f.speed * float64(time.Since(began)))) }
	sim, err := simgpu.New(server, f.dir, clock, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sim.Close()) }()
	sim.SetSpeed(f.speed)
	var uuids []string
	for _, g := range server.GPUs {
		uuids = append(uuids, g.UUID)
	}
	plugin, err := simgpus.Start(ctx, simgpus.Options{
		Cluster: d, Node: f.name, UUIDs: uuids, Model: server.GPUs[0].Model, Bytes: int64(server.GPUs[0].Memory), Kubelet: f.kubelet, CDI: f.cdi,
		Mounts: []containers.Mount{{Source: f.dir, Target: simFolder}}, Env: []string{"CARMA_SIM=" + simFolder},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, withdraw(plugin)) }()
	select {
	case <-ctx.Done():
		return nil
	case <-plugin.Offered():
	case <-time.After(registerLimit):
		log.Warn().Str("kubelet", f.kubelet).Msg("the kubelet has not taken the driver in yet; is --kubelet its folder?")
		select {
		case <-ctx.Done():
			return nil
		case <-plugin.Offered():
		}
	}
	log.Info().Str("node", f.name).Int("gpus", len(uuids)).Str("server", server.Name).Float64("speed", f.speed).Msg("the node offers its GPUs")
	tell(ctx, d, f.name, sim, log)
	return nil
}

// registerLimit is how long a kubelet may take until that is remarkable.
const registerLimit = 30 * time.Second

// withdrawLimit bounds taking the GPUs back at the end.
const withdrawLimit = 5 * time.Second

func withdraw(p *simgpus.Plugin) error {
	ctx, end := context.WithTimeout(context.Background(), withdrawLimit)
	defer end()
	return p.Close(ctx)
}

const (
	// lookEvery is the time between two readings of the GPUs; what has changed is told.
	lookEvery = time.Second
	// tellEvery is the longest time without telling anything.
	tellEvery = 10 * time.Second
)

// tell tells what the GPUs show, until ctx ends.
func tell(ctx context.Context, d *kubernetes.Driver, node string, source gpu.Source, log zerolog.Logger) {
	var before string
	var at time.Time
	failed := false
	for {
		samples, err := source.Sample(ctx)
		face := ""
		if err == nil {
			face, err = faceOf(samples)
		}
		if err == nil && (face != before || time.Since(at) >= tellEvery) {
			var text string
			if text, err = (cluster.Report{GPUs: samples}).Text(); err == nil {
				err = d.Tell(ctx, node, text)
			}
			if err == nil {
				before, at = face, time.Now()
			}
		}
		if ctx.Err() != nil {
			return
		}
		if (err != nil) != failed {
			if failed = err != nil; failed {
				log.Error().Err(err).Msg("what the GPUs show cannot be told; it is tried again")
			} else {
				log.Info().Msg("what the GPUs show can be told again")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
	}
}

// faceOf is what of samples is told at once: all but figures that always change.
func faceOf(samples []gpu.Sample) (string, error) {
	still := append([]gpu.Sample{}, samples...)
	for i := range still {
		still[i].EnergyJ, still[i].PowerW, still[i].TemperatureC, still[i].CounterJ = 0, 0, 0, 0
	}
	return cluster.Report{GPUs: still}.Text()
}
