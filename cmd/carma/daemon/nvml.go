//go:build cgo

package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"carma/cmd/carma/cli"
	"carma/configs"
	"carma/runner"
	"carma/runner/gpu"
	"carma/runner/gpu/cgroup"
	"carma/runner/gpu/dcgm"
	"carma/runner/gpu/nvml"
)

// openLimit bounds the wait for a driver at the start. With persistence mode
// off the driver initializes each GPU then, which takes seconds.
const openLimit = time.Minute

// realGPUs are those of this machine, with what else tells of their activity.
type realGPUs struct {
	*nvml.Source
	page  *dcgm.Page // nil: none
	notes []string
}

// openNVML opens the GPUs of this machine; only: those, empty: all.
func openNVML(ctx context.Context, only []string, config configs.Config, opt *runner.Options, log zerolog.Logger) (gpu.Source, error) {
	out := &realGPUs{}
	o := nvml.Options{Only: only, Log: log}
	if config.DCGMExporter != "" {
		out.page = dcgm.Watch(config.DCGMExporter, config.SampleEvery, log)
		o.Activity = out.page
	}
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	source, err := nvml.Open(ctx, nvml.Library(), o)
	if err != nil {
		if out.page != nil {
			err = errors.Join(err, out.page.Close())
		}
		var none *nvml.Unavailable
		if !errors.As(err, &none) {
			return nil, err
		}
		if none.NoDriver {
			return nil, &noDriverError{cli.UsageError{What: none.Text, Hint: none.Mend}}
		}
		return nil, cli.Usagef(none.Mend, "%s", none.Text)
	}
	out.Source = source
	if err := forReal(config); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	if !cgroup.SeesHost("/") {
		out.notes = append(out.notes, "carma runs in a PID namespace of its own and cannot tell its tasks' GPU processes from others; start it with the host's (docker run --pid host)")
	}
	for _, note := range out.notes {
		log.Warn().Msg(note)
	}
	return out, nil
}

// Notes implements gpu.Noting.
func (g *realGPUs) Notes() []string {
	notes := append(g.Source.Notes(), g.notes...)
	if g.page != nil {
		if err := g.page.Err(); err != nil {
			notes = append(notes, "the dcgm-exporter cannot be read: "+err.Error())
		}
	}
	return notes
}

// Close implements gpu.Source.
func (g *realGPUs) Close() error {
	err := g.Source.Close()
	if g.page != nil {
		err = errors.Join(err, g.page.Close())
	}
	return err
}
