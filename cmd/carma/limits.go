package main

import (
	"carma/configs"
	environments "carma/estimator/environment"
	"carma/mapper"
	"carma/runner"
)

// limitsOf is how the configuration wants the GPU memory of tasks bounded.
func limitsOf(config configs.Config) runner.Limits {
	l := runner.Limits{Caps: config.MemoryCaps}
	if env, err := environments.Named(config.Environment); err == nil { // the predictor has refused a wrong name
		l.Context = mapper.Bytes(env.Context + env.ConvContext)
	}
	return l
}
