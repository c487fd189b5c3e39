package doctor

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
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
func (p *Prover) Calibrate(ctx context.Context, who request.Caller, image string, gpus []GPU) (c api.Calibration, err error) {
	if p.ProverConfig.Calibrate == nil {
		return c, request.Errorf(409, "this daemon cannot keep an environment of its own")
	}
	idle, err := p.idle(ctx)
	if err != nil {
		return c, err
	}
	if len(idle) == 0 {
		return c, request.Errorf(409, "no GPU is idle with %s free: the figures would not be true; try again when one is, or carma drain --gpu 0 and wait", calibrateFree)
	}
	ctx, done := p.Engine.WhileAnswering(ctx)
	defer done()
	img, err := p.Driver.Image(ctx, image)
	if errors.Is(err, containers.ErrNotFound) {
		return c, request.Errorf(404, "image %s is not on this machine; name one that is, with PyTorch", image)
	}
	if err != nil {
		return c, err
	}
	i := slices.IndexFunc(gpus, func(d GPU) bool { return d.UUID == string(idle[0]) })
	if i < 0 {
		return c, request.Errorf(409, "GPU %s is not there any more; try again", idle[0])
	}
	first, began := gpus[i], time.Now()
	rec := &record.Record{Submit: api.Submit{Image: image}, Name: "doctor", User: who.Name, UID: who.UID, GID: who.GID, ImageUser: img.User, ImageEnv: limits.Heeded(img.Env)}
	rec.Task.NextExclusive = true
	limited, cancel := context.WithTimeout(ctx, calibrateLimit)
	defer cancel()
	lines, err := p.calibrateOn(limited, rec, idle[:min(2, len(idle))])
	if limited.Err() != nil && ctx.Err() == nil {
		return c, request.Errorf(504, "the program in %s has not ended after %s", image, calibrateLimit)
	}
	if err != nil {
		return c, request.Errorf(422, "image %s: %v", image, err)
	}
	now, before, err := p.ProverConfig.Calibrate(lines, first.Capacity, p.Clock.Time())
	if err != nil {
		return c, request.Errorf(422, "image %s: %v", image, err)
	}
	p.Log.Info().Str("environment", now.Name).Int64("context", now.Context).Msg("memory is estimated for this machine's own environment")
	return api.Calibration{GPU: first.Index, Model: first.Model, Simulated: p.Simulated, Seconds: time.Since(began).Seconds(), Now: now, Before: before}, nil
}

// idle returns the GPUs on which nothing runs.
func (p *Prover) idle(ctx context.Context) (idle []model.GPUID, err error) {
	err = p.Look(ctx, func(s *mapper.State) {
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
func (p *Prover) calibrateOn(ctx context.Context, rec *record.Record, gpus []model.GPUID) (lines []string, err error) {
	launch := model.Launch{Attempt: 1, Alone: true}
	for _, id := range gpus {
		launch.Grants = append(launch.Grants, model.Grant{GPU: id, Memory: calibrateFree})
	}
	spec, err := p.Attempts.Attempt(rec, launch, false).Spec()
	if err != nil {
		return nil, err
	}
	name, over := p.Trials.Name("doctor")
	defer over()
	spec.Name = name
	spec.Entrypoint = []string{"/bin/sh", "-c", `CARMA_PROGRAM="$0" exec "$(command -v python3 || command -v python || echo python3)" -c "$0"`}
	spec.Command, spec.Park = []string{calibrateProgram}, false
	if p.Simulated {
		spec.Entrypoint, spec.Command = nil, []string{"calibrate"}
	}
	id, err := p.Driver.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), proveLimit)
		defer cancel()
		err = errors.Join(err, p.Driver.Remove(end, id))
	}()
	lines, err = p.Trials.Run(ctx, id)
	if err != nil && len(lines) > 0 {
		err = fmt.Errorf("the program ended: %s", lines[len(lines)-1])
	}
	return lines, err
}
