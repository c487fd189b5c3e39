package daemon

import (
	"context"
	"path/filepath"
	"runtime"

	"carma/cmd/carma/settings"
	"carma/runner"
	"carma/runner/gpu"
	"carma/runner/suspend"
	"carma/runner/suspend/leave"
	"carma/runner/suspend/support"

	"github.com/rs/zerolog"
)

// simulatedDriver is the driver version of a simulated server, which determines its
// features.
const simulatedDriver = "580"

// setSuspending sets the daemon's options for suspending tasks. end must be called when
// the daemon ends. The GPUs must be set before.
func setSuspending(config settings.Config, source gpu.Source, opt *runner.Options, log zerolog.Logger) (end func() error) {
	if inCluster(config) {
		opt.NoSuspending = claimStays
		return func() error { return nil }
	}
	o := &support.Options{Off: config.Suspend == "off", Move: config.Suspend == "move", Arch: runtime.GOARCH}
	end = func() error { return nil }
	var driver suspend.Caller
	switch s := source.(type) {
	case interface{ Driver() suspend.Caller }: // simulated
		driver, o.Driver, o.Arch = s.Driver(), simulatedDriver, "amd64"
		o.Move = o.Move || config.Suspend == "auto"
	case interface{ DriverVersion() string }:
		helper := suspend.NewHelper(suspend.HelperOptions{LockFile: filepath.Join(config.DataDir, "suspend.lock"), Log: log})
		driver, o.Driver, end = helper, s.DriverVersion(), helper.Close
		o.Ready = func(ctx context.Context) error {
			if err := support.MaySuspend(); err != nil {
				return err
			}
			_, err := helper.CUDA(ctx)
			return err
		}
	default:
		return end
	}
	o.By = &leave.Asking{Driver: suspend.New(suspend.Options{Driver: driver, Freezer: suspend.CgroupFreezer{}, Log: log})}
	opt.Suspending = o
	return end
}
