package daemon

import (
	"context"
	"os"

	"carma/cmd/carma/settings"
	"carma/estimator/probe"
	"carma/mapper/model"
	"carma/runner"
	"carma/runner/access"
	"carma/runner/admission"
	"carma/runner/machine"
	"carma/runner/notify"
	"carma/runner/probing"
	"carma/runner/retention"

	"github.com/rs/zerolog"
)

// reloading reads the configuration again on SIGHUP.
type reloading struct {
	asked <-chan os.Signal
	load  func() (settings.Config, error)
	// The daemon informs the service manager of each reload. status is the status text
	// afterwards.
	service *manager
	status  string
}

// changing is the part of a [runner.Runner] that can change at run time.
type changing interface {
	SetMessageRules(rules notify.Rules)
	Reconfigure(ctx context.Context, options model.Options, live runner.Live) error
}

// run reloads on request until ctx ends. Keys that can change while the daemon runs are
// applied; the log names the others. An invalid configuration changes nothing.
func (l reloading) run(ctx context.Context, r changing, config settings.Config, log zerolog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.asked:
		}
		l.service.reloading()
		status := l.status
		if taken, err := l.again(ctx, r, config, log); err != nil {
			status = "the configuration on disk is not in force: " + err.Error()
		} else {
			config = taken
		}
		l.service.reloaded(status)
	}
}

// again reads the configuration once, and returns the configuration then in force.
func (l reloading) again(ctx context.Context, r changing, config settings.Config, log zerolog.Logger) (settings.Config, error) {
	next, err := l.load()
	if err != nil {
		log.Error().Err(err).Msg("the configuration is not read again: it has a fault, and nothing changes")
		return config, err
	}
	next = like(config, next)
	r.SetMessageRules(messageRules(next, log)) // the contents of its file may have changed
	live, restart := settings.Changes(config, next)
	for _, key := range restart {
		log.Warn().Str("key", key).Msg("needs a restart: " + key)
	}
	if len(live) == 0 {
		log.Info().Msg("the configuration was read again: nothing changes")
		return config, nil
	}
	taken := settings.Taken(config, next)
	if err := r.Reconfigure(ctx, taken.Mapper, liveOf(taken)); err != nil {
		log.Error().Err(err).Msg("the configuration could not be changed")
		return config, err
	}
	log.Info().Strs("keys", live).Msg("the configuration was read again")
	return taken, nil
}

// like adapts a reloaded configuration to the daemon's driver. A change of the driver
// needs a restart, and changes no other setting until then.
func like(running, next settings.Config) settings.Config {
	named := next.Driver
	next.Driver = running.Driver
	next = forCluster(next)
	next.Driver = named
	return next
}

// liveOf returns the options of a configuration that can change while the daemon runs.
func liveOf(config settings.Config) runner.Live {
	limits := outputLimits(config)
	return runner.Live{
		Pull: config.Pull, StopGrace: config.StopGrace, AllowedMounts: config.AllowedMounts, AdminGroup: config.AdminGroup, ClusterAdmins: config.KubernetesAdmins,
		HostTasks: config.HostTasks, HostFolders: config.HostFolders,
		Fittings: admission.Fittings{Devices: config.AllowedDevices, Ulimits: config.AllowedUlimits}, Open: config.Visibility == access.VisibilityOpen, OOMTexts: config.OOMTexts,
		Bounds: machine.Bounds{
			Elsewhere: inCluster(config),
			Default:   machine.Share{HostMem: config.HostMem, CPUs: config.CPUs, Pids: config.Pids, ShmSize: config.ShmSize},
			Most:      machine.Share{HostMem: config.MaxHostMem, CPUs: config.MaxCPUs, Pids: config.MaxPids, ShmSize: config.MaxShmSize},
			All:       machine.Share{HostMem: config.AllHostMem, CPUs: config.AllCPUs},
			Helper:    machine.HelperBounds{HostMem: config.HelperHostMem, Reserve: config.HelperReserve, CPUs: config.HelperCPUs},
		},
		PerUser: admission.PerUser{
			Tasks: config.UserTasks, Bytes: config.UserBytes, High: config.UserHigh, Connections: config.UserConnections, MayHigh: config.HighPriority,
			Suites: config.UserSuites, Helpers: config.UserHelpers, Volumes: config.UserVolumes,
		},
		Keep:    retention.Keep{Tasks: config.KeepTasks, TasksFor: config.KeepTasksFor, OutputFor: config.KeepOutputFor},
		Probing: probing.Settings{When: config.Probe, Limits: probe.Limits{Timeout: config.ProbeTimeout, Memory: int64(config.ProbeMemory)}},
		Output:  &limits,
	}
}
