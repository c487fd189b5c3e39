package daemon

import (
	"context"
	"os"

	"github.com/rs/zerolog"

	"carma/configs"
	"carma/estimator/probe"
	"carma/runner"
)

// reloading reads the configuration again when it is asked to, by SIGHUP.
type reloading struct {
	asked <-chan os.Signal
	load  func() (configs.Config, error)
}

// run obeys until ctx ends. What can change while the daemon runs does; what
// cannot is named in the log; a configuration that cannot be changes nothing.
func (l reloading) run(ctx context.Context, r *runner.Runner, config configs.Config, log zerolog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.asked:
		}
		next, err := l.load()
		if err != nil {
			log.Error().Err(err).Msg("the configuration is not read again: it has a fault, and nothing changes")
			continue
		}
		live, restart := configs.Changes(config, next)
		for _, key := range restart {
			log.Warn().Str("key", key).Msg("needs a restart: " + key)
		}
		if len(live) == 0 {
			log.Info().Msg("the configuration was read again: nothing changes")
			continue
		}
		err = r.Reconfigure(ctx, next.Mapper, liveOf(next))
		if err != nil {
			log.Error().Err(err).Msg("the configuration could not be changed")
			continue
		}
		config = configs.Taken(config, next)
		log.Info().Strs("keys", live).Msg("the configuration was read again")
	}
}

// liveOf are the options of a configuration that can change while the daemon runs.
func liveOf(config configs.Config) runner.Live {
	limits := outputLimits(config)
	return runner.Live{
		Pull: config.Pull, StopGrace: config.StopGrace, AllowedMounts: config.AllowedMounts, AdminGroup: config.AdminGroup,
		HostTasks: config.HostTasks, HostFolders: config.HostFolders,
		Fittings: runner.Fittings{Devices: config.AllowedDevices, Ulimits: config.AllowedUlimits}, Open: config.Visibility == runner.VisibilityOpen,
		Bounds: runner.Bounds{
			Default: runner.Share{HostMem: config.HostMem, CPUs: config.CPUs, Pids: config.Pids, ShmSize: config.ShmSize},
			Most:    runner.Share{HostMem: config.MaxHostMem, CPUs: config.MaxCPUs, Pids: config.MaxPids, ShmSize: config.MaxShmSize},
			All:     runner.Share{HostMem: config.AllHostMem, CPUs: config.AllCPUs},
			Helper:  runner.HelperBounds{HostMem: config.HelperHostMem, Reserve: config.HelperReserve, CPUs: config.HelperCPUs},
		},
		PerUser: runner.PerUser{
			Tasks: config.UserTasks, Bytes: config.UserBytes, High: config.UserHigh, Connections: config.UserConnections, MayHigh: config.HighPriority,
			Suites: config.UserSuites, Helpers: config.UserHelpers, Volumes: config.UserVolumes,
		},
		Keep:    runner.Keep{Tasks: config.KeepTasks, TasksFor: config.KeepTasksFor, OutputFor: config.KeepOutputFor},
		Probing: runner.Probing{When: config.Probe, Limits: probe.Limits{Timeout: config.ProbeTimeout, Memory: int64(config.ProbeMemory)}},
		Output:  &limits,
	}
}
