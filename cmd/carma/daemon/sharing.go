package daemon

import (
	"carma/cmd/carma/settings"
	"carma/containers"
	"carma/runner"
	"carma/runner/mps"
	"carma/runner/sharing"

	"github.com/rs/zerolog"
)

// setMPS sets the daemon's options for MPS. Simulated GPUs decide this themselves, unless
// the configuration requests MPS. The GPUs must be set before.
func setMPS(config settings.Config, opt *runner.Options, log zerolog.Logger) {
	auto := config.MPS == "auto"
	if config.MPS == "off" || auto && opt.Attach == containers.AttachSimulated {
		return
	}
	control, err := mps.Find(config.MPSControl)
	switch {
	case err != nil && auto:
		opt.NoMPS = err.Error()
		log.Info().Str("reason", opt.NoMPS).Msg("tasks on one GPU take turns: there is no MPS")
		return
	case err != nil:
		control = config.MPSControl // doctor and the first task report that the program is missing
	}
	opt.MPS = &sharing.MPS{
		Groups: &mps.Groups{Dir: config.MPSDir, Binary: control, Shared: config.MPS == "shared"}, Auto: auto,
		Threads: config.MPSThreads, LimitMemory: config.MPSMemoryLimit, HostIPC: config.MPSIPC == "host",
	}
}
