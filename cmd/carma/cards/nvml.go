//go:build cgo

package cards

import (
	"context"
	"errors"
	"time"

	"carma/cmd/carma/cli"
	"carma/runner/gpu"
	"carma/runner/gpu/cgroup"
	"carma/runner/gpu/dcgm"
	"carma/runner/gpu/nvml"
)

// openLimit is the longest wait for a driver at the start. Without persistence mode the
// driver initializes each GPU then, which takes seconds.
const openLimit = time.Minute

// real contains the GPUs of this machine, with the other source of their activity.
type real struct {
	*nvml.Source
	page  *dcgm.Page // nil if there is none
	notes []string
}

// Open opens the GPUs of this machine. The error is a [NoDriver] if no driver is
// installed.
func Open(ctx context.Context, opt Options) (gpu.Source, error) {
	out := &real{}
	o := nvml.Options{Only: opt.Only, Log: opt.Log}
	if opt.DCGMExporter != "" {
		out.page = dcgm.Watch(opt.DCGMExporter, opt.Every, opt.Log)
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
			return nil, &NoDriver{cli.UsageError{What: none.Text, Hint: none.Fix}}
		}
		return nil, cli.Usagef(none.Fix, "%s", none.Text)
	}
	out.Source = source
	if !cgroup.SeesHost("/") {
		out.notes = append(out.notes, "carma runs in a PID namespace of its own and cannot tell its tasks' GPU processes from others; start it with the host's (docker run --pid host, hostPID in a pod)")
	}
	for _, note := range out.notes {
		opt.Log.Warn().Msg(note)
	}
	return out, nil
}

// Notes implements gpu.Noting.
func (g *real) Notes() []string {
	notes := append(g.Source.Notes(), g.notes...)
	if g.page != nil {
		if err := g.page.Err(); err != nil {
			notes = append(notes, "the dcgm-exporter cannot be read: "+err.Error())
		}
	}
	return notes
}

// Close implements gpu.Source.
func (g *real) Close() error {
	err := g.Source.Close()
	if g.page != nil {
		err = errors.Join(err, g.page.Close())
	}
	return err
}
