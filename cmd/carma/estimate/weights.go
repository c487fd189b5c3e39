package estimate

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	environments "carma/estimator/environment"
	"carma/estimator/methods"
	"carma/estimator/networks"
	"carma/estimator/networks/safetensors"
)

// weightsAlone returns the safetensors file that the arguments name, if there is no
// network for it, or "".
func weightsAlone(o options, args []string) string {
	if o.probing || len(args) != 1 {
		return ""
	}
	return networks.WeightsAlone(args[0])
}

// estimateWeights estimates from a file of weights: it counts the parameters and treats
// them like a model with only a few known figures.
func estimateWeights(a *cli.App, cmd *cobra.Command, o options, env *environments.Environment, chosen []methods.Method, path string) error {
	if o.few.asked.Params > 0 {
		return cli.Usagef("leave --params away", "%s says how many parameters there are", path)
	}
	w, err := safetensors.Read(path)
	if err != nil {
		return cli.Usagef("", "%v", err)
	}
	if w.Parameters == 0 {
		return cli.Usagef("", "%s: no parameters in it", path)
	}
	if o.few.asked.Family == "" {
		return cli.Usagef("put its config.json beside it, or add for example --family transformer", "%s has %d parameters, but no layers", path, w.Parameters)
	}
	o.few.asked.Params = w.Parameters
	o.few.of = fmt.Sprintf("%s (%s)", filepath.Base(path), w)
	return estimateFew(a, cmd, o, env, chosen)
}
