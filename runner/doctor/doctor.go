package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/engine"
	"carma/runner/gpu"
	"carma/runner/journal"
	"carma/runner/monitor"
	"carma/runner/mps"
	"carma/runner/problems"

	"golang.org/x/sys/unix"
)

// Look calls a function with the state of the core.
type Look func(context.Context, func(*mapper.State)) error

// Doctor checks what the daemon depends on.
type Doctor struct {
	Config
}

// Config has the parts of the daemon that a [Doctor] asks.
type Config struct {
	Driver    containers.Driver
	Engine    *engine.Health
	Source    gpu.Source
	Monitor   *monitor.Monitor
	Journal   *journal.Journal
	Clock     *clock.Clock
	Look      Look
	DataDir   string
	MountDir  string // folder of the users' mounts, or empty
	Simulated bool   // the GPUs are simulated
	// Unchecked is set if it is not checked whether running tasks can open their GPUs.
	Unchecked bool
	// MPS has the groups of MPS, or is nil if tasks do not share GPUs by MPS. AutoMPS is set
	// if they may share GPUs without it.
	MPS     *mps.Groups
	AutoMPS bool
}

// GPU is a GPU, with what the daemon decided about it.
type GPU struct {
	gpu.Device
	// Reading is the last reading of the monitor, if Read is set.
	Reading gpu.Sample
	Read    bool
	Shared  model.Sharing // how its tasks share it
	NoMPS   string        // why they do not share it by MPS, or empty
	// Limits describes how the memory of its tasks is limited. Unlimited is set if it is not.
	Limits    string
	Unlimited bool
	// Suspend describes how its tasks can be suspended. SuspendFix is the fix if they cannot.
	Suspend, SuspendFix string
}

// Facts has the decisions and the state of the daemon that a [Doctor] cannot ask for.
type Facts struct {
	GPUs []GPU // by index
	// Attach is the way in which containers get their GPUs, and AttachWhy the reason for it.
	// AttachErr is set if there is none.
	Attach    containers.Attach
	AttachWhy string
	AttachErr error
	// Elsewhere is set if tasks run on other machines. AllowedMounts are the folders that
	// users may mount, and Near says why the engine sees other files than the daemon.
	Elsewhere     bool
	AllowedMounts []string
	Near          error
	// Checked is set if the whole journal has been checked, and Damage is what was found.
	Checked bool
	Damage  error
	// Problems keep tasks from starting.
	Problems []api.Trouble
	// Lost has a line for each task that can no longer open its GPUs.
	Lost []string
	// NoMPS is the reason why MPS does not work although it is configured, or empty.
	NoMPS string
	// Output and Messages are the checks of the stored output and of the messages.
	Output, Messages api.Check
}

// New returns a doctor.
func New(c Config) *Doctor { return &Doctor{c} }

// Check checks everything. It asks for the facts after the engine was probed.
func (d *Doctor) Check(ctx context.Context, facts func(context.Context) Facts) []api.Check {
	short, cancel := context.WithTimeout(ctx, engine.APILimit) // for the engine
	defer cancel()
	answers := d.checkEngine(short)
	f := facts(ctx)
	checks := []api.Check{answers, d.checkSource(&f), d.checkJournal(&f), checkDisk(d.DataDir), f.Output}
	if !f.Elsewhere {
		checks = append(checks, d.checkMounts(&f))
	}
	checks = append(checks, f.Messages)
	if d.Simulated {
		checks = append(checks, d.checkSimtask(short))
	} else {
		checks = append(checks, CheckClock(d.Clock), d.checkHealth(f.GPUs), checkActivity(f.GPUs), checkAttach(&f))
		if !f.Elsewhere {
			checks = append(checks, d.checkDeviceAccess(&f, "/"), d.checkDriverFiles("/"), checkControlGroups())
		}
	}
	checks = append(checks, checkProblems(f.Problems)...)
	return append(append(checks, d.checkNotes()...), d.checkSharing(ctx, &f), checkLimits(f.GPUs), checkSuspend(f.GPUs), d.checkLedger(ctx))
}

func (d *Doctor) checkEngine(ctx context.Context) api.Check {
	c := api.Check{Name: "container engine", Status: "ok"}
	if up, why := d.Engine.Probe(ctx); !up {
		text, remedy, _ := strings.Cut(why, engine.ToFix)
		c.Status, c.Detail, c.Fix = "failure", text+"; tasks wait", remedy
		return c
	}
	c.Detail = fmt.Sprintf("%s %s answers", d.Driver.Name(), d.Engine.Version())
	return c
}

// checkProblems reports the problems that keep tasks from starting, except an engine that
// does not answer: checkEngine reports that.
func checkProblems(all []api.Trouble) []api.Check {
	var out []api.Check
	for _, x := range all {
		switch {
		case x.Scope == problems.ScopeDaemon:
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

func (d *Doctor) checkSource(f *Facts) api.Check {
	c := api.Check{Name: "GPUs", Status: "ok", Detail: fmt.Sprintf("%d from %s", len(f.GPUs), d.Source.Name())}
	if d.Simulated {
		c.Detail += fmt.Sprintf(", simulated at %g times the clock", d.Clock.Speed())
	}
	if !d.Monitor.FailedSince().IsZero() {
		c.Status, c.Detail, c.Fix = "failure", "the GPUs cannot be read", "see the daemon's log"
	}
	return c
}

func (d *Doctor) checkJournal(f *Facts) api.Check {
	c := api.Check{Name: "journal", Status: "ok"}
	first, last, err := d.Journal.Bounds()
	switch {
	case err != nil:
		c.Status, c.Detail, c.Fix = "failure", err.Error(), "carma history verify"
	case f.Damage != nil:
		c.Status, c.Detail, c.Fix = "failure", f.Damage.Error(), journal.RepairRemedy
	case !f.Checked:
		c.Detail = fmt.Sprintf("events %d to %d in %s; it is being checked, old events are not yet known to be sound", first, last, d.DataDir)
	default:
		c.Detail = fmt.Sprintf("events %d to %d in %s", first, last, d.DataDir)
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

func (d *Doctor) checkSimtask(ctx context.Context) api.Check {
	c := api.Check{Name: "simulated task image", Status: "ok", Detail: SimtaskImage + " is there"}
	if up, _ := d.Engine.Status(); !up {
		c.Status, c.Detail = "warning", "not checked: the engine does not answer"
	} else if _, err := d.Driver.Image(ctx, SimtaskImage); err != nil {
		c.Status, c.Detail, c.Fix = "warning", SimtaskImage+" is not on this machine", "make image"
	}
	return c
}

func checkAttach(f *Facts) api.Check {
	c := api.Check{Name: "GPU attachment", Status: "ok"}
	if err := f.AttachErr; err != nil {
		c.Status, c.Detail = "failure", err.Error()
		if none, ok := errors.AsType[*containers.NoAttachError](err); ok {
			c.Detail, c.Fix = "containers cannot get GPUs: "+none.Text, none.Fix
		}
		return c
	}
	c.Detail = fmt.Sprintf("%s: %s", f.Attach, f.AttachWhy)
	return c
}

// checkNotes reports the notes of the engine's driver.
func (d *Doctor) checkNotes() []api.Check {
	var out []api.Check
	for _, note := range d.Engine.Info().Notes {
		out = append(out, api.Check{Name: d.Driver.Name(), Status: "warning", Detail: note})
	}
	return out
}

func (d *Doctor) checkLedger(ctx context.Context) api.Check {
	c := api.Check{Name: "ledger", Status: "ok", Detail: "no GPU is over-committed, no task is lost"}
	var err error
	if lookErr := d.Look(ctx, func(s *mapper.State) { err = s.Audit() }); lookErr != nil {
		err = lookErr
	}
	if err != nil {
		c.Status, c.Detail, c.Fix = "failure", err.Error(), "this is a bug: keep the data folder and report it"
	}
	return c
}

// CheckClock warns if the daemon's time differs from the wall clock's.
func CheckClock(now *clock.Clock) api.Check {
	c := api.Check{Name: "clock", Status: "ok", Detail: "the daemon's time is the wall clock's"}
	switch ahead := now.Ahead().Round(time.Second); {
	case ahead > clock.Slack:
		c.Status, c.Detail = "warning", fmt.Sprintf("the daemon's time is %s ahead of the wall clock, which was set back", ahead)
	case ahead < -clock.Slack:
		c.Status, c.Detail = "warning", fmt.Sprintf("the daemon's time is %s behind the wall clock, which was set forward", -ahead)
	}
	if c.Status != "ok" {
		c.Fix = "set the wall clock right; time limits and delays count the time that really passes"
	}
	return c
}
