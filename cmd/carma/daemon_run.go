package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"carma/configs"
	"carma/configs/servers"
	"carma/containers"
	"carma/estimator/booking"
	"carma/mapper"
	"carma/runner"
	"carma/runner/gpu"
	"carma/runner/gpu/simgpu"
	"carma/runner/journal"
	"carma/runner/mounts"
	"carma/runner/mps"
)

// fewProcessors is below how many processors Go is told that there are more.
const fewProcessors = 8

// spareProcessors leaves Go a processor for the loop on a small machine. The
// loop waits for the disk in each round, and each time Go gives its processor
// away: on two that are busy with listings it then stands in line, some 10 ms
// for each of its waits. The kernel, which is asked instead, favours who sleeps.
func spareProcessors() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < fewProcessors {
		runtime.GOMAXPROCS(fewProcessors)
	}
}

// runDaemon wires the daemon's parts together and runs it until ctx ends.
func runDaemon(ctx context.Context, config configs.Config, log zerolog.Logger, reloads reloading) error {
	spareProcessors()
	j, err := journal.OpenWith(config.DataDir, journal.Options{Outside: outsideWitness(config), Spare: int64(config.JournalReserve)})
	if err != nil {
		return journalError(err)
	}
	defer closing(log, "the journal", j.Close)

	driver, err := openDriver(config)
	if err != nil {
		return err
	}
	defer closing(log, "the engine's client", driver.Close)

	predicts, err := booking.NewPredictor(config.Environment)
	if err != nil {
		return usagef("", "%v", err)
	}
	live := liveOf(config)
	opt := runner.Options{
		Version: version, DataDir: config.DataDir, Mapper: config.Mapper, SampleEvery: config.SampleEvery, Activity: config.Activity,
		Pull: live.Pull, StopGrace: live.StopGrace, AllowedMounts: live.AllowedMounts, AdminGroup: live.AdminGroup,
		Keep: live.Keep, Open: live.Open, Bounds: live.Bounds, PerUser: live.PerUser, Probing: live.Probing,
	}
	if os.Geteuid() == 0 {
		opt.MountDir = mounts.DefaultDir
	}
	if config.MPS != "off" {
		opt.MPS = &runner.MPS{
			Groups:  &mps.Groups{Dir: config.MPSDir, Binary: config.MPSControl, Shared: config.MPS == "shared"},
			Threads: config.MPSThreads, LimitMemory: config.MPSMemoryLimit, HostIPC: config.MPSIPC == "host",
		}
	}
	if err := setLimits(config, &opt); err != nil {
		return err
	}
	clock := runner.NewClock(1)
	source, err := openGPUs(ctx, config, clock, &opt, log)
	if err != nil {
		return err
	}
	defer closing(log, "the GPUs", source.Close)
	if err := chooseEnvironment(ctx, predicts, config.Environment, source, &opt, log); err != nil {
		return err
	}
	if opt.Attach == "" && config.Attach != "auto" {
		opt.Attach = containers.Attach(config.Attach)
	}

	logs, err := openOutput(config, j)
	if err != nil {
		return err
	}
	r, err := runner.New(ctx, opt, runner.Deps{
		Journal: j, Logs: logs,
		Driver: driver, GPUs: source, Estimator: predicts, Clock: clock, Log: log,
	})
	if err != nil {
		return limitError(err)
	}
	l, err := runner.Listen(config.Socket)
	if errors.Is(err, runner.ErrSocketInUse) {
		return usagef("stop it, or choose another --socket and --data-dir", "%v", err)
	}
	if err != nil {
		return err
	}
	log.Info().Str("socket", config.Socket).Str("data", config.DataDir).Str("gpus", source.Name()).
		Str("policy", config.Mapper.Policy).Float64("speed", clock.Speed()).Msg("carma is ready")
	var reloader sync.WaitGroup
	defer reloader.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
	reloader.Go(func() { reloads.run(ctx, r, config, log) })
	return r.RunAndServe(ctx, l)
}

func closing(log zerolog.Logger, what string, close func() error) {
	if err := close(); err != nil {
		log.Warn().Err(err).Str("part", what).Msg("could not be closed cleanly")
	}
}

// openGPUs opens the source of GPUs and completes the options that depend on it.
func openGPUs(ctx context.Context, config configs.Config, clock *runner.Clock, opt *runner.Options, log zerolog.Logger) (gpu.Source, error) {
	name := config.GPUs
	if name == "auto" {
		source, err := openNVML(ctx, nil, config, opt, log)
		var none *noDriverError
		if !errors.As(err, &none) || hasNVIDIA() {
			return source, err
		}
		name = "sim:" + servers.Default
		log.Info().Str("gpus", name).Str("reason", none.what).Msg("no NVIDIA driver here: the GPUs are simulated")
	}
	if server, ok := strings.CutPrefix(name, "sim:"); ok {
		if config.Attach != "auto" && config.Attach != string(containers.AttachSimulated) {
			return nil, usagef("write --attach auto, or leave it out", "--attach %s needs real GPUs, %s are simulated", config.Attach, name)
		}
		return openSimulated(server, config, clock, opt, log)
	}
	var only []string
	if list, ok := strings.CutPrefix(name, "nvml:"); ok {
		for gpu := range strings.SplitSeq(list, ",") {
			only = append(only, strings.TrimSpace(gpu))
		}
	}
	return openNVML(ctx, only, config, opt, log)
}

// noDriverError says that there is no NVIDIA driver here. As an error of the
// daemon it is one of usage.
type noDriverError struct{ usageError }

func (e *noDriverError) Unwrap() error { return &e.usageError }

func hasNVIDIA() bool {
	_, err := os.Stat("/dev/nvidiactl")
	return err == nil
}

// forReal refuses what only simulated GPUs can do.
func forReal(config configs.Config) error {
	if config.Speed != 1 {
		return usagef("leave --speed out, or simulate: --gpus sim:"+servers.Default, "--speed %v needs simulated GPUs", config.Speed)
	}
	if config.Attach == string(containers.AttachSimulated) {
		return usagef("write --attach auto, or leave it out", "--attach simulated gives a task no GPU, %s are real", config.GPUs)
	}
	return nil
}

// simFolder is where a container finds the simulated GPUs' socket.
const simFolder = "/run/carma-sim"

func openSimulated(name string, config configs.Config, clock *runner.Clock, opt *runner.Options, log zerolog.Logger) (gpu.Source, error) {
	server, err := servers.Find(cmp.Or(name, servers.Default))
	if err != nil {
		return nil, usagef("", "--gpus sim:%s: %v", name, err)
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
	opt.Devices = func(mapper.TaskID, int) ([]containers.Mount, []string) {
		return []containers.Mount{{Source: dir, Target: simFolder}}, []string{"CARMA_SIM=" + simFolder}
	}
	return sim, nil
}

// outsideWitness is the file beside the socket, which is not on the data
// folder's disk as a rule, that notices when the whole folder is set back.
func outsideWitness(config configs.Config) string {
	of := sha256.Sum256([]byte(config.DataDir))
	return filepath.Join(filepath.Dir(config.Socket), "journal-"+hex.EncodeToString(of[:6]))
}

// journalError makes a journal that cannot be used as it is a usage error:
// nothing has happened, and repeating will not help.
func journalError(err error) error {
	if errors.Is(err, journal.ErrLocked) || errors.Is(err, journal.ErrNewer) {
		return usagef("", "%v", err)
	}
	return err
}
