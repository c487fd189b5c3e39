package daemon

import (
	"errors"
	"path/filepath"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/engine"
	"carma/cmd/carma/settings"
	"carma/runner"
	"carma/runner/limiter"
	"carma/runner/limits"
)

// setLimits sets the daemon's options that limit the GPU memory of tasks. The options of
// MPS must be set before.
func setLimits(config settings.Config, opt *runner.Options) error {
	dir, err := filepath.Abs(filepath.Join(config.DataDir, "limits"))
	if err != nil {
		return err
	}
	opt.Init = engine.InitProgram()
	opt.Limits = limiter.Options{
		Mode: config.MemoryLimit, Burst: config.MemoryBurst, Caps: config.MemoryCaps,
		Keeper: &limits.Keeper{Dir: dir, Tool: limits.Tool{Path: config.NVIDIASMI}},
	}
	if opt.MPS != nil && config.MemoryLimit == limiter.ModeOff {
		opt.MPS.LimitMemory = false
	}
	return nil
}

// limitError converts an error about limits that this machine does not support to a usage
// error.
func limitError(err error) error {
	var cannot *limiter.CannotLimitError
	if errors.As(err, &cannot) {
		mend := cannot.Fix
		if mend == "" {
			mend = "write memory-limit: auto"
		}
		return cli.Usagef(mend, "memory-limit: driver: %v", cannot)
	}
	return err
}
