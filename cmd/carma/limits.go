package main

import (
	"errors"
	"os"
	"path/filepath"

	"carma/configs"
	"carma/runner"
	"carma/runner/limits"
)

// setLimits completes the daemon's options with how the configuration wants the
// GPU memory of tasks bounded. The options of MPS come before.
func setLimits(config configs.Config, opt *runner.Options) error {
	dir, err := filepath.Abs(filepath.Join(config.DataDir, "limits"))
	if err != nil {
		return err
	}
	opt.Init = initProgram()
	opt.Limits = runner.Limits{
		Mode: config.MemoryLimit, Burst: config.MemoryBurst, Caps: config.MemoryCaps,
		Keeper: &limits.Keeper{Dir: dir, Tool: limits.Tool{Path: config.NVIDIASMI}},
	}
	if opt.MPS != nil && config.MemoryLimit == runner.LimitOff {
		opt.MPS.LimitMemory = false
	}
	return nil
}

// limitError makes limits that this machine does not have a usage error.
func limitError(err error) error {
	var cannot *runner.CannotLimitError
	if errors.As(err, &cannot) {
		mend := cannot.Mend
		if mend == "" {
			mend = "write memory-limit: auto"
		}
		return usagef(mend, "memory-limit: driver: %v", cannot)
	}
	return err
}

// initProgram is the path of carma-init, which is beside this program; empty: it
// is not there.
func initProgram() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	path := filepath.Join(filepath.Dir(self), "carma-init")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}
