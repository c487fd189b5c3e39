package attempt

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/control"
	"carma/runner/engine"
	"carma/runner/gpu"
	"carma/runner/gpu/devices"
	"carma/runner/loop"
	"carma/runner/monitor"
	"carma/runner/record"
)

// ending describes the end of an attempt. It becomes an event.
type ending struct {
	class   model.Class
	code    int
	message string
	demand  units.Bytes
	// unconfirmed is set if only one witness shows a GPU OOM.
	unconfirmed bool
	// verdict holds the observations about the end, or nil.
	verdict *record.AttemptEnd
	fault   *model.Fault // why it could not start, if the task is not at fault, or nil
	// finished is the end of the container if it ended before this daemon found it, else 0.
	finished units.Instant
}

// classifier determines how an attempt has ended.
type classifier struct {
	*core
	output     *output
	suspension *suspension
	// withoutGPU is set if the attempt was killed because it could not become a client of
	// MPS.
	withoutGPU atomic.Bool
	// deviceLost is set if the attempt was stopped because it cannot open its GPUs.
	deviceLost atomic.Bool
}

// endedByEngine reports whether a container died of a signal because its engine ends.
// `systemctl restart docker` ends all containers like that, and Docker reports their ends
// before it stops answering. A restart can be over before Docker is asked, so an outage
// since the end counts as well.
func (c *classifier) endedByEngine(ctx context.Context, exit containers.Exit, heard time.Time) bool {
	if (exit.Code != 137 && exit.Code != 143) || exit.OOMKilled || c.stopRequested() {
		return false
	}
	if c.deps.Engine.SilentAfter(heard.Add(-engine.PingEvery)) {
		return true
	}
	e, ok := engine.As[containers.Ender](c.deps.Driver)
	return ok && e.Ending(ctx)
}

// endFacts collects the facts about a container that ran, beside its output.
func (c *classifier) endFacts(ctx context.Context, exit containers.Exit, tail *containers.Tail, byEngine, unseen bool) containers.Facts {
	facts := containers.Facts{
		Stopped: c.stopRequested() && !unseen, EngineLost: byEngine || unseen,
		NoGPU: len(c.launch.Grants) == 0, OOMTexts: append(slices.Clone(c.deps.Settings.OOMTexts()), c.rec.Submit.OOMTexts...), OOMExits: oomExits(c.rec.Submit.OOMExits),
		Origins: tail.Origins(exit.Finished),
	}
	if facts.NoGPU {
		return facts
	}
	erred := time.Time{}
	if at := c.output.erred.Load(); at > 0 {
		erred = time.Unix(0, at)
	}
	if _, late := c.deps.Source.(gpu.Lagging); late {
		erred = time.Time{} // samples of other machines have their own times
	}
	facts.Memory, facts.GPUFault = c.deps.Monitor.Measured(c.key(), erred, exit.Finished)
	if peak, exact := c.accounted(ctx); exact {
		facts.Memory.Seen, facts.Memory.Exact, facts.Memory.Peak = true, true, max(facts.Memory.Peak, int64(peak))
	}
	for _, grant := range c.grants() {
		facts.Memory.Grant = max(facts.Memory.Grant, int64(grant.Memory))
	}
	if c.memory.Limited() && !c.memory.Bursts() {
		facts.Memory.Limit = facts.Memory.Grant
	}
	_, most := c.deps.GPUs.Capacities()
	facts.MostMemory = int64(most)
	facts.Memory.Neighbours = c.overranBeside(ctx)
	switch now := c.deps.Access.State(c.key()); {
	case now.State.Lost():
		facts.DeviceLost = c.lossText(now)
	case now.State == devices.Openable:
		facts.DeviceOpen = true
	}
	return facts
}

// accounted returns the driver's own record of the attempt's highest memory use.
func (c *classifier) accounted(ctx context.Context) (peak units.Bytes, exact bool) {
	ctx, enough := context.WithTimeout(ctx, monitor.SampleTimeout)
	defer enough()
	return c.deps.Monitor.Accounted(ctx, c.key())
}

// oomExits returns exit codes as numbers; the submission was checked.
func oomExits(texts []string) (codes []int) {
	for _, text := range texts {
		if n, err := strconv.Atoi(text); err == nil {
			codes = append(codes, n)
		}
	}
	return codes
}

// overranBeside returns a text about a neighbour of the attempt that uses more than its grant,
// or "".
func (c *classifier) overranBeside(ctx context.Context) (text string) {
	_ = c.deps.Loop.Look(ctx, func(s *mapper.State) {
		for _, grant := range c.launch.Grants {
			for _, g := range s.GPUs() {
				if g.ID != grant.GPU {
					continue
				}
				for _, r := range g.Residents {
					if r.Task != c.launch.Task && r.Used > r.Grant {
						text = fmt.Sprintf("task %d used %s of the %s allocated to it on GPU %d", r.Task, r.Used, r.Grant, g.Index)
					}
				}
			}
		}
	})
	return text
}

// memories returns the capacities of the attempt's GPUs, by UUID.
func (c *classifier) memories() map[string]units.Bytes {
	all := map[string]units.Bytes{}
	for _, g := range c.grants() {
		all[string(g.GPU)] = c.deps.GPUs.Capacity(g.GPU)
	}
	return all
}

// classify returns how a container that ran has ended.
func (c *classifier) classify(ctx context.Context, exit containers.Exit, tail *containers.Tail, outage bool) ending {
	// A container that had ended when this daemon found it may have gone down with the
	// engine, or with the machine. No clock is compared, because somebody may have set
	// it.
	unseen := c.adopted != nil && c.adopted.State == containers.StateExited && !exit.Finished.IsZero()
	if exit.Code != 0 && !c.stopRequested() && !unseen && exit.Error == "" && c.output.erred.Load() > 0 {
		c.catchUp(ctx, exit)
	}
	v := containers.Classify(exit, tail.Lines(), c.endFacts(ctx, exit, tail, outage, unseen))
	if v.Class == containers.ClassProgram && v.CUDA && c.mps.ServerFailed(ctx) {
		v.Class, v.Message = containers.ClassMPSFault, "the MPS server failed under it, by this task's doing or another's; "+v.Message
	}
	if c.withoutGPU.Load() && !c.stopRequested() {
		v.Class, v.Message = containers.ClassMPSFault, "it could not reach the MPS server and went on without its GPU"
	}
	if v.Class == containers.ClassMPSFault {
		c.deps.Running.Go(func() { c.mps.Repair(ctx) })
	}
	if v.Start != nil {
		return c.unstarted(v.Start, v.Start.Text)
	}
	if why := c.suspension.lostWhy(); why != "" && !c.stopRequested() {
		v.Class, v.Message = containers.ClassInfrastructure, "lost while it was suspended: "+why
	}
	end := ending{class: model.Class(v.Class), code: v.Code, message: v.Message, demand: units.Bytes(v.Demand), unconfirmed: !v.Confirmed, verdict: &record.AttemptEnd{Remark: v.Remark, Witnesses: v.Witnesses}}
	if unseen {
		end.finished = c.deps.Clock.FromWall(exit.Finished)
	}
	return end
}

// exited returns the end of the attempt as a change, with its peak, curve and
// energy.
func (c *classifier) exited(end ending) *loop.Change {
	task, attempt := c.launch.Task, c.launch.Attempt
	peak, seen := c.deps.Monitor.Observed(task, attempt)
	untouched := c.deps.Monitor.NeverTouched(gpu.AttemptKey{Task: task, Attempt: attempt})
	c.deps.Monitor.Forget(task, attempt)
	params := c.output.following.Parameters()
	host := c.deps.Memory.Forget(gpu.AttemptKey{Task: task, Attempt: attempt})
	if _, share := c.booked(); end.class == model.ExitHostOOM {
		host = max(host, share.Limit) // the container reached its limit
	}
	joules := c.deps.Energy.Stop(c.deps.Clock.Now(), gpu.AttemptKey{Task: task, Attempt: attempt})
	ev := model.Exited{
		At: c.deps.Clock.Now(), Task: task, Attempt: attempt, Class: end.class, Code: end.code,
		Peak: peak, HostPeak: host, Demand: end.demand, Message: end.message, Finished: end.finished, Fault: end.fault,
	}
	if c.rec.Job != nil && (end.fault == nil || end.fault.Scope != model.ScopeNamespace) { // if a full namespace refused the pod, the pod still waits
		ev.Again = control.NextPod
	}
	ev.Unconfirmed = end.unconfirmed && end.class == model.ExitGPUOOM
	ev.Filled = seen.Preallocates(c.deps.GPUs.Smallest(c.grants()), c.deps.SampleEvery, ev.At)
	return &loop.Change{Keep: true, Events: func(units.Instant) ([]model.Event, []*record.Record, error) {
		if rec, _ := c.deps.Records.Get(task); rec != nil && (seen != nil || params != nil || joules > 0 || untouched || end.verdict != nil) {
			return []model.Event{ev}, []*record.Record{rec.WithCurve(attempt, seen).WithParams(params).WithEnergy(attempt, joules).WithUntouched(attempt, untouched).WithEnd(attempt, end.verdict)}, nil
		}
		return []model.Event{ev}, nil, nil
	}}
}
