package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"

	"carma/cmd/carma/cards"
	"carma/cmd/carma/cli"
	"carma/cmd/carma/settings"
	"carma/configs/servers"
	"carma/containers"
	"carma/mapper/model"
	"carma/runner"
	"carma/runner/clock"
	"carma/runner/gpu"
	"carma/runner/gpu/simgpu"
)

// openGPUs opens the source of GPUs and sets the options that depend on it.
func openGPUs(ctx context.Context, config settings.Config, driver containers.Driver, clock *clock.Clock, opt *runner.Options, log zerolog.Logger) (gpu.Source, error) {
	if inCluster(config) || config.GPUs == "cluster" {
		return openCluster(ctx, config, driver, opt)
	}
	return openAt(ctx, "/", config, clock, opt, log)
}

// openAt is openGPUs with root as the folder in which it searches for files of a driver
// or a GPU.
func openAt(ctx context.Context, root string, config settings.Config, clock *clock.Clock, opt *runner.Options, log zerolog.Logger) (gpu.Source, error) {
	name := config.GPUs
	if name == "auto" {
		source, err := openReal(ctx, nil, config, log)
		var none *cards.NoDriver
		if !errors.As(err, &none) {
			return source, err
		}
		if err := mayPretend(none, root); err != nil {
			return nil, err
		}
		name = "sim:" + servers.Default
		log.Info().Str("gpus", name).Str("reason", none.What).Msg("no NVIDIA driver here: the GPUs are simulated")
	}
	if server, ok := strings.CutPrefix(name, "sim:"); ok {
		if config.Attach != "auto" && config.Attach != string(containers.AttachSimulated) {
			return nil, cli.Usagef("write --attach auto, or leave it out", "--attach %s needs real GPUs, %s are simulated", config.Attach, name)
		}
		return openSimulated(server, config, clock, opt, log)
	}
	var only []string
	if list, ok := strings.CutPrefix(name, "nvml:"); ok {
		for gpu := range strings.SplitSeq(list, ",") {
			only = append(only, strings.TrimSpace(gpu))
		}
	}
	return openReal(ctx, only, config, log)
}

// openReal opens the GPUs of this machine, or only the GPUs in only if that is not empty.
func openReal(ctx context.Context, only []string, config settings.Config, log zerolog.Logger) (gpu.Source, error) {
	source, err := cards.Open(ctx, cards.Options{Only: only, DCGMExporter: config.DCGMExporter, Every: config.SampleEvery, Log: log})
	if err != nil {
		return nil, err
	}
	if err := forReal(config); err != nil {
		return nil, errors.Join(err, source.Close())
	}
	return source, nil
}

// mayPretend refuses to simulate GPUs by default on a machine that has GPUs or their
// driver but cannot use them.
func mayPretend(none *cards.NoDriver, root string) error {
	sign := gpu.NVIDIAHere(root)
	if sign == "" {
		return nil
	}
	return cli.Usagef(none.Hint, "there is %s, but the GPUs cannot be read: %s", sign, none.What)
}

// forReal refuses settings that only simulated GPUs support.
func forReal(config settings.Config) error {
	if config.Speed != 1 {
		return cli.Usagef("leave --speed out, or simulate: --gpus sim:"+servers.Default, "--speed %v needs simulated GPUs", config.Speed)
	}
	if config.Attach == string(containers.AttachSimulated) {
		return cli.Usagef("write --attach auto, or leave it out", "--attach simulated gives a task no GPU, %s are real", config.GPUs)
	}
	return nil
}

// simFolder is the folder in a container with the simulated GPUs' socket.
const simFolder = "/run/carma-sim"

func openSimulated(name string, config settings.Config, clock *clock.Clock, opt *runner.Options, log zerolog.Logger) (gpu.Source, error) {
	server, err := servers.Find(cmp.Or(name, servers.Default))
	if err != nil {
		return nil, cli.Usagef("", "--gpus sim:%s: %v", name, err)
	}
	dir := filepath.Join(config.DataDir, "sim")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	sim, err := simgpu.New(server, dir, clock.Time, log)
	if err != nil {
		return nil, fmt.Errorf("simulated GPUs: %w", err)
	}
	opt.Attach, opt.Speed, opt.SetSpeed = containers.AttachSimulated, config.Speed, sim.SetSpeed
	opt.Devices = func(model.TaskID, int) ([]containers.Mount, []string) {
		return []containers.Mount{{Source: dir, Target: simFolder}}, []string{"CARMA_SIM=" + simFolder}
	}
	return sim, nil
}
