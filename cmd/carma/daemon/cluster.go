package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/settings"
	"carma/containers"
	"carma/runner"
	"carma/runner/gpu"
)

// inCluster reports whether tasks are pods of a cluster.
func inCluster(config settings.Config) bool { return config.Driver == "kubernetes" }

// forCluster disables settings that are on by default and not available on a cluster:
// actions on processes or GPUs of this machine. [checkCluster] refuses explicit requests
// for them. A grant keeps the size of its claim, which cannot be reduced while a pod
// runs.
func forCluster(config settings.Config) settings.Config {
	if !inCluster(config) {
		return config
	}
	config.HostTasks, config.MPS, config.MemoryLimit, config.Suspend, config.Processors = "none", "off", "off", "off", "any"
	config.Mapper.Shrink, config.Mapper.LearnMemory = 0, 0
	return config
}

// clusterDriver is the part of the driver kubernetes used here.
type clusterDriver interface {
	GPUs(ctx context.Context) (gpu.Source, error)
	// Hold waits until the daemon who is the only one of its namespace. It calls waits while
	// there is another daemon, and lost if another one has taken over.
	Hold(ctx context.Context, who string, waits, lost func(other string)) error
	Release(ctx context.Context, who string) error
}

// openCluster reads the GPUs of the cluster.
func openCluster(ctx context.Context, config settings.Config, driver containers.Driver, opt *runner.Options) (gpu.Source, error) {
	d, ok := driver.(clusterDriver)
	if !ok {
		return nil, cli.Usagef("write --driver kubernetes, or leave --gpus out", "--gpus cluster needs a cluster; the driver is %s", config.Driver)
	}
	switch {
	case config.GPUs != "auto" && config.GPUs != "cluster":
		return nil, cli.Usagef("leave --gpus out", "--gpus %s: with driver kubernetes the GPUs are the cluster's", config.GPUs)
	case config.Attach != "auto":
		return nil, cli.Usagef("leave --attach out", "--attach %s: a cluster gives pods their GPUs by claims", config.Attach)
	case config.Speed != 1:
		return nil, cli.Usagef("write --speed to carma agent, which simulates the GPUs", "--speed %v: a cluster's time is the clock's", config.Speed)
	}
	source, err := d.GPUs(ctx)
	if err != nil {
		return nil, err
	}
	opt.Attach = containers.AttachClaim
	return source, nil
}

// lostLease ends a daemon because another one has the Lease.
type lostLease struct{ other string }

func (l *lostLease) Error() string {
	return "another daemon, " + l.other + ", has taken the Lease: this one ends; tasks go on"
}

// releaseLimit is the longest time for releasing the Lease at the end.
const releaseLimit = 5 * time.Second

// holdLease waits until this daemon is the only one of its namespace. release releases
// the Lease.
func holdLease(ctx context.Context, config settings.Config, driver containers.Driver, lost context.CancelCauseFunc, log zerolog.Logger) (release func() error, err error) {
	d, ok := driver.(clusterDriver)
	if !ok {
		return func() error { return nil }, nil
	}
	dir, err := filepath.Abs(config.DataDir)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	who := host + ":" + dir // the journal's lock allows only one daemon with this name
	err = d.Hold(ctx, who, func(other string) {
		log.Warn().Str("daemon", other).Msg("another daemon works in this namespace; this one waits for its Lease")
	}, func(other string) { lost(&lostLease{other}) })
	if fault, ok := errors.AsType[*containers.StartFault](err); ok {
		return nil, cli.Usagef(fault.Remedy, "driver kubernetes: %v", err)
	}
	if err != nil {
		return nil, fmt.Errorf("driver kubernetes: %w", err)
	}
	return func() error {
		ctx, end := context.WithTimeout(context.Background(), releaseLimit)
		defer end()
		return d.Release(ctx, who)
	}, nil
}
