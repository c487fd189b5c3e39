package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"carma/cmd/carma/agent"
	"carma/cmd/carma/cli"
	"carma/configs/servers"
	"carma/containers"
	"carma/containers/kubernetes"
	"carma/containers/kubernetes/simgpus"
	"carma/internal/suggest"
	"carma/runner/gpu/simgpu"
)

// simFolder is the folder in a pod that contains the socket of the simulated GPUs.
const simFolder = "/run/carma-sim"

// check returns the simulated server that the flags name, or an error if a flag is invalid.
func check(f agent.Flags) (servers.Server, error) {
	if err := suggest.OneOf(f.Server, servers.Names()); err != nil {
		return servers.Server{}, cli.Usagef("", "--simulate: %v", err)
	}
	if !(f.Speed > 0 && f.Speed <= 100_000) {
		return servers.Server{}, cli.Usagef("", "--speed %v is not above 0 and at most 100000", f.Speed)
	}
	for _, dir := range []string{f.Kubelet, f.CDI, f.Dir} {
		if !filepath.IsAbs(dir) {
			return servers.Server{}, cli.Usagef("", "%q is not an absolute path", dir)
		}
	}
	server, err := servers.Find(f.Server)
	return ofNode(server, f.Name), err
}

// ofNode gives the GPUs of a simulated server UUIDs that are unique to the node, because two
// nodes may simulate the same server.
func ofNode(s servers.Server, node string) servers.Server {
	gpus := append([]servers.GPU{}, s.GPUs...)
	for i := range gpus {
		b := sha256.Sum256([]byte(node + " " + gpus[i].UUID))
		gpus[i].UUID = fmt.Sprintf("GPU-%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
	}
	s.GPUs = gpus
	return s
}

// simulate publishes the GPUs of a server to the cluster and reports their samples, until ctx
// ends.
func simulate(ctx context.Context, d *kubernetes.Driver, server servers.Server, f agent.Flags, log zerolog.Logger) (err error) {
	if err := os.MkdirAll(f.Dir, 0o755); err != nil {
		return err
	}
	began := time.Now()
	clock := func() time.Time { return began.Add(time.Duration(f.Speed * float64(time.Since(began)))) }
	sim, err := simgpu.New(server, f.Dir, clock, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sim.Close()) }()
	sim.SetSpeed(f.Speed)
	var uuids []string
	for _, g := range server.GPUs {
		uuids = append(uuids, g.UUID)
	}
	plugin, err := simgpus.Start(ctx, simgpus.Options{
		Cluster: d, Node: f.Name, UUIDs: uuids, Model: server.GPUs[0].Model, Bytes: int64(server.GPUs[0].Memory), Kubelet: f.Kubelet, CDI: f.CDI,
		Mounts: []containers.Mount{{Source: f.Dir, Target: simFolder}}, Env: []string{"CARMA_SIM=" + simFolder},
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
		log.Warn().Str("kubelet", f.Kubelet).Msg("the kubelet has not taken the driver in yet; is --kubelet its folder?")
		select {
		case <-ctx.Done():
			return nil
		case <-plugin.Offered():
		}
	}
	log.Info().Str("node", f.Name).Int("gpus", len(uuids)).Str("server", server.Name).Float64("speed", f.Speed).Msg("the node offers its GPUs")
	newTeller(d, f.Name, sim, log).run(ctx)
	return nil
}

// registerLimit is the time after which a missing registration by the kubelet is logged.
const registerLimit = 30 * time.Second

// withdrawLimit is the time limit for the removal of the published GPUs at the end.
const withdrawLimit = 5 * time.Second

func withdraw(p *simgpus.Plugin) error {
	ctx, end := context.WithTimeout(context.Background(), withdrawLimit)
	defer end()
	return p.Close(ctx)
}
