package runner

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/limits"
	"carma/runner/record"
	"carma/runner/request"
)

//go:embed calibrate.py
var calibrateProgram string

const (
	// calibrateLimit bounds a calibration: a minute, and the time to load PyTorch four times
	// from a slow disk.
	calibrateLimit = 4 * time.Minute
	// calibrateFree is the memory that must be free on the GPU.
	calibrateFree = 6 * units.GiB
)

// Calibrating makes the machine's own environment from the output of the program of carma
// doctor --calibrate on a GPU, and uses it for estimates from now on.
type Calibrating func(lines []string, capacity units.Bytes, at time.Time) (now, before api.Environment, err error)

// Calibrate measures, in a container of an image with PyTorch on an idle GPU, the GPU
// memory of a process beside its tensors.
func (r *Runner) Calibrate(ctx context.Context, who request.Caller, image string) (c api.Calibration, err error) {
	if r.opt.Calibrate == nil {
		return c, request.Errorf(409, "this daemon cannot keep an environment of its own")
	}
	gpus, err := r.idleGPUs(ctx)
	if err != nil {
		return c, err
	}
	if len(gpus) == 0 {
		return c, request.Errorf(409, "no GPU is idle with %s free: the figures would not be true; try again when one is, or carma drain --gpu 0 and wait", calibrateFree)
	}
	ctx, done := r.engine.WhileAnswering(ctx)
	defer done()
	img, err := r.Driver.Image(ctx, image)
	if errors.Is(err, containers.ErrNotFound) {
		return c, request.Errorf(404, "image %s is not on this machine; name one that is, with PyTorch", image)
	}
	if err != nil {
		return c, err
	}
	began := time.Now()
	first := r.gpus.Infos()[gpus[0]]
	rec := &record.Record{Submit: api.Submit{Image: image}, Name: "doctor", User: who.Name, UID: who.UID, GID: who.GID, ImageUser: img.User, ImageEnv: limits.Heeded(img.Env)}
	rec.Task.NextExclusive = true
	limited, cancel := context.WithTimeout(ctx, calibrateLimit)
	defer cancel()
	lines, err := r.calibrateOn(limited, rec, gpus[:min(2, len(gpus))])
	if limited.Err() != nil && ctx.Err() == nil {
		return c, request.Errorf(504, "the program in %s has not ended after %s", image, calibrateLimit)
	}
	if err != nil {
		return c, request.Errorf(422, "image %s: %v", image, err)
	}
	now, before, err := r.opt.Calibrate(lines, first.Capacity, r.Clock.Time())
	if err != nil {
		return c, request.Errorf(422, "image %s: %v", image, err)
	}
	r.Log.Info().Str("environment", now.Name).Int64("context", now.Context).Msg("memory is estimated for this machine's own environment")
	return api.Calibration{GPU: first.Index, Model: first.Model, Simulated: r.opt.SetSpeed != nil, Seconds: time.Since(began).Seconds(), Now: now, Before: before}, nil
}

// idleGPUs returns the GPUs on which nothing runs.
func (r *Runner) idleGPUs(ctx context.Context) (idle []model.GPUID, err error) {
	err = r.loop.Look(ctx, func(s *mapper.State) {
		for _, g := range s.GPUs() {
			if len(g.Residents) == 0 && g.OtherProcesses < units.GiB && g.FaultReason() == "" && g.Capacity-g.OtherProcesses >= calibrateFree {
				idle = append(idle, g.ID)
			}
		}
	})
	return idle, err
}

// calibrateOn runs the program to its end and returns its output. On simulated GPUs the
// image's own program simulates it.
func (r *Runner) calibrateOn(ctx context.Context, rec *record.Record, gpus []model.GPUID) (lines []string, err error) {
	w := &worker{Runner: r, rec: rec, stop: newStopper(), noMPS: true, launch: model.Launch{Attempt: 1, Alone: true}}
	for _, id := range gpus {
		w.launch.Grants = append(w.launch.Grants, model.Grant{GPU: id, Memory: calibrateFree})
	}
	spec, err := w.spec()
	if err != nil {
		return nil, err
	}
	name, over := r.trial()
	defer over()
	spec.Name = name
	spec.Entrypoint = []string{"/bin/sh", "-c", `CARMA_PROGRAM="$0" exec "$(command -v python3 || command -v python || echo python3)" -c "$0"`}
	spec.Command, spec.Park = []string{calibrateProgram}, false
	if r.opt.SetSpeed != nil {
		spec.Entrypoint, spec.Command = nil, []string{"calibrate"}
	}
	id, err := r.Driver.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), proveLimit)
		defer cancel()
		err = errors.Join(err, r.Driver.Remove(end, id))
	}()
	lines, err = r.output(ctx, id)
	if err != nil && len(lines) > 0 {
		err = fmt.Errorf("the program ended: %s", lines[len(lines)-1])
	}
	return lines, err
}
