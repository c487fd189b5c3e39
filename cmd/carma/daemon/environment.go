package daemon

import (
	"context"
	"time"

	"carma/estimator/booking"
	environments "carma/estimator/environment"
	"carma/internal/units"
	"carma/runner"
	"carma/runner/api"
	"carma/runner/doctor"
	"carma/runner/gpu"

	"github.com/rs/zerolog"
)

// chooseEnvironment selects the environment of a daemon that has none configured: the
// machine's own if it was calibrated, otherwise the environment for its real GPUs. It
// also sets the options that depend on it.
func chooseEnvironment(ctx context.Context, p *booking.Predictor, configured string, source gpu.Source, opt *runner.Options, log zerolog.Logger) error {
	devices, err := source.GPUs(ctx)
	if err != nil {
		return err
	}
	var models []string
	for _, d := range devices {
		models = append(models, d.Model)
	}
	own, kept, err := environments.Kept(opt.DataDir, models)
	if err != nil {
		log.Warn().Err(err).Msg("the machine's own environment cannot be read; estimates are made without it")
	}
	switch {
	case configured != "":
	case kept:
		p.Use(own)
		log.Info().Str("environment", own.Name).Msg("memory is estimated for this machine, as it was calibrated")
	case opt.SetSpeed == nil:
		if name := p.ForGPUs(models); name != "" {
			log.Info().Str("environment", name).Msg("memory is estimated for these GPUs")
		}
	}
	opt.Limits.Context = p.Context()
	opt.Calibrate = calibrating(p, configured, opt.DataDir, models)
	return nil
}

// calibrating returns a function that stores the machine's own environment in the data
// folder, and uses it for estimates at once, unless another environment is configured.
func calibrating(p *booking.Predictor, configured, folder string, models []string) doctor.Calibrating {
	return func(lines []string, capacity units.Bytes, at time.Time) (now, before api.Environment, err error) {
		m, err := environments.ReadMeasured(lines)
		if err != nil {
			return now, before, err
		}
		base := *p.Environment()
		own, err := m.Of(base, models, int64(capacity), at)
		if err != nil {
			return now, before, err
		}
		if err := environments.Keep(folder, own); err != nil {
			return now, before, err
		}
		if configured == "" {
			p.Use(own)
		}
		return shown(own), shown(base), nil
	}
}

func shown(e environments.Environment) api.Environment {
	return api.Environment{Name: e.Name, About: e.About, Context: e.Context, CuDNN: e.ConvContext, CuBLAS: e.CuBLAS, NCCL: e.NCCL}
}
