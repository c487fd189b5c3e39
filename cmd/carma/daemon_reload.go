package main

import (
	"context"
	"os"

	"github.com/rs/zerolog"

	"carma/configs"
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
		err = r.Reconfigure(ctx, next.Mapper, runner.Live{
			Pull: next.Pull, StopGrace: next.StopGrace, AllowedMounts: next.AllowedMounts, AdminGroup: next.AdminGroup, PerUser: perUser(next),
		})
		if err != nil {
			log.Error().Err(err).Msg("the configuration could not be changed")
			continue
		}
		config.Mapper, config.Pull, config.StopGrace = next.Mapper, next.Pull, next.StopGrace
		config.AllowedMounts, config.AdminGroup = next.AllowedMounts, next.AdminGroup
		config.UserTasks, config.UserBytes, config.UserHigh = next.UserTasks, next.UserBytes, next.UserHigh
		config.HighPriority = next.HighPriority
		log.Info().Strs("keys", live).Msg("the configuration was read again")
	}
}

// perUser is what one user may have.
func perUser(config configs.Config) runner.PerUser {
	return runner.PerUser{
		Tasks: config.UserTasks, Bytes: config.UserBytes, High: config.UserHigh, Connections: config.UserConnections, MayHigh: config.HighPriority,
	}
}
