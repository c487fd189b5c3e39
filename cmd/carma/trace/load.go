package trace

import (
	"github.com/spf13/pflag"

	"carma/cmd/carma/cli"
)

// loadFlags adds --load and the number of GPUs to which it refers. The returned function
// checks them.
func loadFlags(flags *pflag.FlagSet, load *float64, gpus *int) (check func() error) {
	*gpus = 4 // as in the published experiments
	flags.Float64Var(load, "load", 0, "GPU time of all tasks alone / GPU time of the GPUs from first to last arrival, for example 1.2 (default: keep the gaps)")
	cli.CountFlag(flags, gpus, 1, "gpu-count", "number of GPUs that --load refers to (default: 4)")
	return func() error {
		if flags.Changed("load") && !(*load >= 0.001 && *load <= 1000) {
			return cli.Usagef("write for example --load 1.2", "--load: %g is not between 0.001 and 1000", *load)
		}
		return nil
	}
}
