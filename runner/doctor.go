package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper"
	"carma/runner/api"
	"carma/runner/engine"

	"golang.org/x/sys/unix"
)

// Doctor checks everything the daemon depends on.
func (r *Runner) Doctor(ctx context.Context) []api.Check {
	short, cancel := context.WithTimeout(ctx, engine.APILimit) // for the engine
	defer cancel()
	checks := []api.Check{r.checkEngine(short), r.checkSource(), r.checkJournal(), checkDisk(r.opt.DataDir), r.checkOutput(), r.channels.Check()}
	elsewhere := r.live().Bounds.Elsewhere
	if !elsewhere {
		checks = slices.Insert(checks, len(checks)-1, r.checkMounts())
	}
	if r.opt.SetSpeed != nil {
		checks = append(checks, r.checkSimtask(short))
	} else {
		checks = append(checks, r.checkClock(), r.checkHealth(), r.checkMetrics(), r.checkAttach())
		if !elsewhere {
			checks = append(checks, r.checkDeviceAccess(ctx, "/"), r.checkDriverFiles("/"), checkControlGroups())
		}
	}
	checks = append(checks, r.checkProblems()...)
	return append(append(checks, r.checkNotes()...), r.checkSharing(ctx), r.checkLimits(), r.checkSuspend(), r.checkLedger(ctx))
}

func (r *Runner) checkEngine(ctx context.Context) api.Check {
	c := api.Check{Name: "container engine", Status: "ok"}
	if up, why := r.engine.Probe(ctx); !up {
		text, remedy, _ := strings.Cut(why, engine.ToFix)
		c.Status, c.Detail, c.Fix = "failure", text+"; tasks wait", remedy
		return c
	}
	c.Detail = fmt.Sprintf("%s %s answers", r.Driver.Name(), r.engine.Version())
	return c
}

// checkProblems reports the problems that keep tasks from starting, except an engine that
// does not answer: checkEngine reports that.
func (r *Runner) checkProblems() []api.Check {
	var out []api.Check
	all, _ := r.trouble.now()
	for _, x := range all {
		switch {
		case x.Scope == troubleDaemon:
			out = append(out, api.Check{Name: "daemon", Status: "warning", Detail: x.Text, Fix: x.Remedy})
		case x.Code != "down":
			detail := x.Text
			if x.Failures > 0 {
				detail += fmt.Sprintf("; %d starts in a row have failed since %s; the tasks wait and lose nothing", x.Failures, x.Since.Format("2006-01-02 15:04"))
			}
			out = append(out, api.Check{Name: "starting containers", Status: "failure", Detail: detail, Fix: x.Remedy})
		}
	}
	return out
}

func (r *Runner) checkSource() api.Check {
	c := api.Check{Name: "GPUs", Status: "ok", Detail: fmt.Sprintf("%d from %s", len(r.gpus.Infos()), r.GPUs.Name())}
	if r.opt.SetSpeed != nil {
		c.Detail += fmt.Sprintf(", simulated at %g times the clock", r.Clock.Speed())
	}
	if !r.monitor.FailedSince().IsZero() {
		c.Status, c.Detail, c.Fix = "failure", "the GPUs cannot be read", "see the daemon's log"
	}
	return c
}

func (r *Runner) checkJournal() api.Check {
	c := api.Check{Name: "journal", Status: "ok"}
	first, last, err := r.Journal.Bounds()
	over, found := r.checked.result()
	switch {
	case err != nil:
		c.Status, c.Detail, c.Fix = "failure", err.Error(), "carma history verify"
	case found != nil:
		c.Status, c.Detail, c.Fix = "failure", found.Error(), checkedRemedy
	case !over:
		c.Detail = fmt.Sprintf("events %d to %d in %s; it is being checked, old events are not yet known to be sound", first, last, r.opt.DataDir)
	default:
		c.Detail = fmt.Sprintf("events %d to %d in %s", first, last, r.opt.DataDir)
	}
	return c
}

// Free space, in bytes, below which the disk is a warning, and a failure.
const (
	diskLow  = 1 << 30
	diskLast = 64 << 20
)

func checkDisk(dir string) api.Check {
	c := api.Check{Name: "disk", Status: "ok"}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		c.Status, c.Detail, c.Fix = "failure", err.Error(), "make "+dir+" readable for the daemon"
		return c
	}
	free := int64(fs.Bavail) * fs.Bsize
	c.Detail = fmt.Sprintf("%s free in %s", units.Bytes(free), dir)
	switch {
	case free < diskLast:
		c.Status, c.Fix = "failure", "free some space: submissions are refused when the journal cannot be written"
	case free < diskLow:
		c.Status, c.Fix = "warning", "free some space: `carma rm` deletes finished tasks with their output"
	}
	return c
}

// SimtaskImage is the image that simulates training tasks on a simulated server.
const SimtaskImage = "carma/simtask:latest"

func (r *Runner) checkSimtask(ctx context.Context) api.Check {
	c := api.Check{Name: "simulated task image", Status: "ok", Detail: SimtaskImage + " is there"}
	if up, _ := r.engine.Status(); !up {
		c.Status, c.Detail = "warning", "not checked: the engine does not answer"
	} else if _, err := r.Driver.Image(ctx, SimtaskImage); err != nil {
		c.Status, c.Detail, c.Fix = "warning", SimtaskImage+" is not on this machine", "make image"
	}
	return c
}

func (r *Runner) checkAttach() api.Check {
	c := api.Check{Name: "GPU attachment", Status: "ok"}
	mode, why, err := r.attaching.Mode()
	if err != nil {
		c.Status, c.Detail = "failure", err.Error()
		if none, ok := errors.AsType[*containers.NoAttachError](err); ok {
			c.Detail, c.Fix = "containers cannot get GPUs: "+none.Text, none.Fix
		}
		return c
	}
	c.Detail = fmt.Sprintf("%s: %s", mode, why)
	return c
}

// checkNotes reports the notes of the engine's driver.
func (r *Runner) checkNotes() []api.Check {
	var out []api.Check
	for _, note := range r.engine.Info().Notes {
		out = append(out, api.Check{Name: r.Driver.Name(), Status: "warning", Detail: note})
	}
	return out
}

func (r *Runner) checkLedger(ctx context.Context) api.Check {
	c := api.Check{Name: "ledger", Status: "ok", Detail: "no GPU is over-committed, no task is lost"}
	var err error
	if lookErr := r.loop.Look(ctx, func(s *mapper.State) { err = s.Audit() }); lookErr != nil {
		err = lookErr
	}
	if err != nil {
		c.Status, c.Detail, c.Fix = "failure", err.Error(), "this is a bug: keep the data folder and report it"
	}
	return c
}
