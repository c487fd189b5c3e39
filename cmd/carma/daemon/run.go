package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/engine"
	"carma/cmd/carma/settings"
	"carma/containers"
	"carma/estimator/booking"
	"carma/runner"
	"carma/runner/clock"
	"carma/runner/gpu/devices"
	"carma/runner/journal"
	"carma/runner/metrics"
	"carma/runner/mounts"
	"carma/runner/server"
	"carma/runner/verify"

	"github.com/rs/zerolog"
)

// fewProcessors is the least GOMAXPROCS of the daemon.
const fewProcessors = 8

// spareProcessors raises GOMAXPROCS on a small machine. The loop waits for the disk in
// each round, and each time Go gives its processor to another goroutine. On two
// processors that are busy with listings, the loop then waits some 10 ms. With more of
// Go's processors the kernel schedules instead, and it prefers a thread that has slept.
func spareProcessors() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < fewProcessors {
		runtime.GOMAXPROCS(fewProcessors)
	}
}

// run wires the daemon's parts together and runs it until ctx ends.
func run(ctx context.Context, config settings.Config, version string, log zerolog.Logger, reloads reloading) error {
	spareProcessors()
	service := findManager(log)
	given, err := handedOver(firstHandedOver)
	if err != nil {
		return err
	}
	j, err := journal.OpenWith(config.DataDir, journal.Options{
		Outside: outsideWitness(config), Spare: int64(config.JournalReserve), Version: version, Readable: verify.Readable,
	})
	if err != nil {
		return err
	}
	logUpgrade(j.Upgraded(), log)
	defer closing(log, "the journal", j.Close)

	driver, err := engine.Open(config)
	if err != nil {
		return err
	}
	defer closing(log, "the engine's client", driver.Close)

	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	release, err := holdLease(ctx, config, driver, lost, log)
	if err != nil {
		return err
	}
	defer closing(log, "the Lease", release)

	predicts, err := booking.NewPredictor(config.Environment)
	if err != nil {
		return cli.Usagef("", "%v", err)
	}
	live := liveOf(config)
	opt := runner.Options{
		Version: version, DataDir: config.DataDir, Account: os.Geteuid(), Mapper: config.Mapper, SampleEvery: config.SampleEvery, Activity: config.Activity,
		Pull: live.Pull, StopGrace: live.StopGrace, AllowedMounts: live.AllowedMounts, AdminGroup: live.AdminGroup, ClusterAdmins: live.ClusterAdmins,
		HostTasks: live.HostTasks, HostFolders: live.HostFolders, Fittings: live.Fittings,
		Keep: live.Keep, Open: live.Open, Bounds: live.Bounds, PerUser: live.PerUser, Probing: live.Probing,
		Notify: runner.Notifying{Rules: messageRules(config, log)},
	}
	if os.Geteuid() == 0 && !inCluster(config) {
		opt.MountDir = mounts.DefaultDir
	}
	opt.Closed = config.Network == "none"
	opt.NearCPUs = config.Processors == "near"
	clock := clock.New(1)
	source, err := openGPUs(ctx, config, driver, clock, &opt, log)
	if err != nil {
		return err
	}
	defer closing(log, "the GPUs", source.Close)
	setMPS(config, &opt, log)
	defer closing(log, "the suspend helper", setSuspending(config, source, &opt, log))
	if os.Geteuid() == 0 && opt.SetSpeed == nil && !inCluster(config) {
		opt.DeviceAccess = &devices.Checker{}
	}
	if err := setLimits(config, &opt); err != nil {
		return err
	}
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
	l, err := listen(config.Socket, given)
	if errors.Is(err, server.ErrSocketInUse) {
		return cli.Usagef("stop it, or choose another --socket and --data-dir", "%v", err)
	}
	if err != nil {
		return err
	}
	r.Server().SetPage(openPage(config, log))
	if err := openRemote(config, r, log); err != nil {
		return err
	}
	page, err := openMetrics(config)
	if err != nil {
		return err
	}
	log.Info().Str("socket", config.Socket).Str("data", config.DataDir).Str("gpus", source.Name()).
		Str("policy", config.Mapper.Policy).Float64("speed", clock.Speed()).Msg("carma is ready")
	var reloader sync.WaitGroup
	defer reloader.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
	reloads.service, reloads.status = service, fmt.Sprintf("answers at %s; GPUs: %s", config.Socket, source.Name())
	reloader.Go(func() { reloads.run(ctx, r, config, log) })
	if page != nil {
		log.Info().Str("address", "http://"+page.Addr().String()+"/metrics").Bool("names", config.MetricsNames).Msg("metrics for Prometheus")
		reloader.Go(func() {
			if err := server.ServeMetrics(ctx, page, r.MetricsPage(metrics.Names(config.MetricsNames))); err != nil {
				log.Error().Err(err).Msg("the page of metrics has ended")
			}
		})
	}
	reloader.Go(func() { service.watch(ctx, reloads.status, r.Turn) })
	defer context.AfterFunc(ctx, func() { service.tell("STOPPING=1") })()
	err = r.RunAndServe(ctx, l)
	service.tell("STOPPING=1") // a drained daemon ends without a request
	if l, ok := errors.AsType[*lostLease](context.Cause(ctx)); ok && err == nil {
		err = l
	}
	return err
}

// logUpgrade logs that earlier versions of carma can no longer read the journal.
func logUpgrade(u *journal.Upgrade, log zerolog.Logger) {
	switch {
	case u == nil:
	case u.Failed != nil:
		log.Warn().Err(u.Failed).Int("from", u.From).Int("to", u.To).Msg("the journal has a newer schema now, which an earlier carma refuses; no backup could be made before")
	default:
		log.Info().Int("from", u.From).Int("to", u.To).Str("backup", u.Backup).Msg("the journal has a newer schema now, which an earlier carma refuses; it can restore this backup")
	}
}

// openMetrics listens at the address of the Prometheus endpoint. It returns nil if there
// is none.
func openMetrics(config settings.Config) (net.Listener, error) {
	if config.Metrics == "off" {
		return nil, nil
	}
	l, err := net.Listen("tcp", config.Metrics)
	if err != nil {
		return nil, cli.Usagef("choose another address with --metrics, or off", "metrics: %v", err)
	}
	return l, nil
}

func closing(log zerolog.Logger, what string, close func() error) {
	if err := close(); err != nil {
		log.Warn().Err(err).Str("part", what).Msg("could not be closed cleanly")
	}
}

// outsideWitness returns the file next to the socket that shows whether the whole data
// folder was replaced by an older copy. It is usually on another disk than the data
// folder.
func outsideWitness(config settings.Config) string {
	of := sha256.Sum256([]byte(config.DataDir))
	return filepath.Join(filepath.Dir(config.Socket), "journal-"+hex.EncodeToString(of[:6]))
}
