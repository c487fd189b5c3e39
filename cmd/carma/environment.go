package main

import (
	"context"

	"github.com/rs/zerolog"

	"carma/estimator/booking"
	"carma/runner"
	"carma/runner/gpu"
)

// chooseEnvironment gives a daemon that has none configured the environment of
// its real GPUs, and completes the options that depend on it.
func chooseEnvironment(ctx context.Context, p *booking.Predictor, configured string, source gpu.Source, opt *runner.Options, log zerolog.Logger) error {
	if configured == "" && opt.SetSpeed == nil {
		devices, err := source.GPUs(ctx)
		if err != nil {
			return err
		}
		var models []string
		for _, d := range devices {
			models = append(models, d.Model)
		}
		if name := p.ForGPUs(models); name != "" {
			log.Info().Str("environment", name).Msg("memory is estimated for these GPUs")
		}
	}
	opt.Limits.Context = p.Context()
	return nil
}
