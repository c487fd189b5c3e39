// Package agent does the work of carma agent, on one machine of a cluster. It reads the
// machine's GPUs, finds the task of each process on them, and reports them to the daemon.
// For tests and demos it simulates the GPUs, offers them to the cluster by a DRA driver
// and gives pods what they need to use them.
package agent

import (
	"context"
	"errors"

	"github.com/rs/zerolog"

	"carma/cmd/carma/agent"
	"carma/cmd/carma/cards"
	"carma/cmd/carma/cli"
	"carma/cmd/carma/settings"
	"carma/configs/servers"
	"carma/containers/kubernetes"
)

// Run implements [agent.Run]: it reports the samples of the node's GPUs until ctx ends.
func Run(ctx context.Context, config settings.Config, f agent.Flags, log zerolog.Logger) (err error) {
	var server servers.Server
	if f.Server != "" {
		if server, err = check(f); err != nil {
			return err
		}
	}
	d, err := kubernetes.New(kubernetes.Options{Kubeconfig: config.Kubeconfig, Namespace: config.KubernetesNamespace})
	if err != nil {
		return cli.Usagef("say where it is: --kubeconfig FILE", "%v", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if f.Server != "" {
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
	t := newTeller(d, f.Name, source, log)
	if err := t.remember(ctx); err != nil {
		return err
	}
	log.Info().Str("node", f.Name).Int("gpus", len(devices)).Str("source", source.Name()).Msg("the node's GPUs are watched")
	t.run(ctx)
	return nil
}
