package admission

import (
	"context"
	"slices"
	"strings"

	"carma/containers"
	"carma/estimator/command"
	"carma/mapper"
	"carma/runner/api"
	"carma/runner/gpushare"
	"carma/runner/record"
	"carma/runner/request"
)

// readCommand reads the command line of a task. It takes the number of GPUs from it if none
// is given, and stores the rest in rec. The lines are for the submitter.
func (a *Controller) readCommand(ctx context.Context, rec *record.Record, image *containers.Image, given bool) (lines []string, err error) {
	sub := &rec.Submit
	read := command.Read(&command.Program{
		Image: sub.Image, Entrypoint: sub.Entrypoint, Command: sub.Command, ImageEntrypoint: image.Entrypoint, ImageCommand: image.Command,
		Env: sub.Env, ImageEnv: image.Env, Grows: a.cfg.Limiter.Grows(),
	})
	rec.Says = &api.Says{Resume: from(read.Resume), Checkpoints: from(read.Checkpoints), Unbuffered: rec.Job == nil && !sub.TTY && !sets(image.Env, record.Unbuffered) && !sets(sub.Env, record.Unbuffered)}
	if sub.CommandCheck != "off" {
		if lines, err = a.fitCommand(ctx, rec, read, given); err != nil {
			return nil, err
		}
	}
	share, err := a.shares().Recognise(rec, read)
	return append(lines, share...), err
}

// fitCommand compares the number of GPUs of a task with the number that its command line
// uses.
func (a *Controller) fitCommand(ctx context.Context, rec *record.Record, read *command.Reading, given bool) (lines []string, err error) {
	sub := &rec.Submit
	asked := command.Asked{GPUs: sub.GPUs, Given: given, None: sub.NoGPU}
	fit := read.Fit(asked)
	if fit.GPUs != sub.GPUs { // the number is from the command, so check that the machine has as many
		if err := a.cfg.Loop.Look(ctx, func(s *mapper.State) { asked.Most = s.MostGPUs() }); err != nil {
			return nil, err
		}
		fit = read.Fit(asked)
	}
	switch {
	case fit.Refusal == "":
	case sub.CommandCheck == "warn":
		fit.Lines = append(fit.Lines, "command: "+fit.Refusal)
	default:
		return nil, request.Errorf(422, "command: %s; --command-check warn submits it as it is", fit.Refusal)
	}
	if fit.GPUs != sub.GPUs {
		rec.Says.GPUs = fit.Taken
		sub.GPUs = fit.GPUs
	}
	return append(fit.Lines, read.Notes()...), nil
}

// from returns the text of a fact, or "" for nil.
func from(f *command.Fact) string {
	if f == nil {
		return ""
	}
	return f.From
}

// sets reports whether env has a variable with the given name.
func sets(env []string, name string) bool {
	return slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
}

// fitChange refuses a changed number of GPUs that contradicts the task's command line.
func fitChange(sub *api.Submit) error {
	if sub.CommandCheck != "" && sub.CommandCheck != "refuse" {
		return nil
	}
	read := command.Read(&command.Program{Image: sub.Image, Entrypoint: sub.Entrypoint, Command: sub.Command, Env: sub.Env})
	if fit := read.Fit(command.Asked{GPUs: sub.GPUs, Given: true, None: sub.NoGPU}); fit.Refusal != "" {
		return request.Errorf(422, "command: %s", fit.Refusal)
	}
	return nil
}

// shares returns what the estimates of programs that take a share of a GPU need.
func (a *Controller) shares() gpushare.GPUs {
	least, most := a.cfg.GPUs.Capacities()
	return gpushare.GPUs{Least: least, Most: most, Headroom: a.cfg.Headroom}
}
