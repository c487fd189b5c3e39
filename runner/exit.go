package runner

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"carma/containers"
	"carma/containers/endtext"
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

// endedByEngine reports whether a container died of a signal because its engine ends.
// `systemctl restart docker` ends all containers like that, and Docker reports their ends
// before it stops answering. A restart can be over before Docker is asked, so an outage
// since the end counts as well.
func (w *worker) endedByEngine(ctx context.Context, exit containers.Exit, heard time.Time) bool {
	if (exit.Code != 137 && exit.Code != 143) || exit.OOMKilled || w.stopRequested() {
		return false
	}
	if w.deps.Engine.SilentAfter(heard.Add(-engine.PingEvery)) {
		return true
	}
	e, ok := engine.As[containers.Ender](w.deps.Driver)
	return ok && e.Ending(ctx)
}

// hearsMemory starts a reading of the GPUs when a line of output names exhausted memory.
// The program that prints it still has its memory, and may end before the next sample.
func (w *worker) hearsMemory(line []byte) {
	if len(w.launch.Grants) == 0 || !endtext.NamesMemory(line) {
		return
	}
	now := time.Now().UnixNano()
	if last := w.erred.Load(); now-last < int64(hearAgain) {
		return
	}
	w.erred.Store(now)
	w.deps.Monitor.Wake()
}

// hearAgain is the shortest time between two readings that lines of output ask for.
const hearAgain = 200 * time.Millisecond

// endFacts collects the facts about a container that ran, beside its output.
func (w *worker) endFacts(ctx context.Context, exit containers.Exit, tail *containers.Tail, byEngine, unseen bool) containers.Facts {
	facts := containers.Facts{
		Stopped: w.stopRequested() && !unseen, EngineLost: byEngine || unseen,
		NoGPU: len(w.launch.Grants) == 0, OOMTexts: append(slices.Clone(w.deps.Daemon.OOMTexts()), w.rec.Submit.OOMTexts...), OOMExits: oomExits(w.rec.Submit.OOMExits),
		Origins: tail.Origins(exit.Finished),
	}
	if facts.NoGPU {
		return facts
	}
	erred := time.Time{}
	if at := w.erred.Load(); at > 0 {
		erred = time.Unix(0, at)
	}
	if _, late := w.deps.Source.(gpu.Lagging); late {
		erred = time.Time{} // samples of other machines have their own times
	}
	facts.Memory, facts.GPUFault = w.deps.Monitor.Measured(w.key(), erred, exit.Finished)
	if peak, exact := w.accounted(ctx); exact {
		facts.Memory.Seen, facts.Memory.Exact, facts.Memory.Peak = true, true, max(facts.Memory.Peak, int64(peak))
	}
	for _, grant := range w.grants() {
		facts.Memory.Grant = max(facts.Memory.Grant, int64(grant.Memory))
	}
	if w.memory.Limited() && !w.memory.Bursts() {
		facts.Memory.Limit = facts.Memory.Grant
	}
	_, most := w.deps.GPUs.Capacities()
	facts.MostMemory = int64(most)
	facts.Memory.Neighbours = w.overranBeside(ctx)
	switch now := w.deps.Access.State(w.key()); {
	case now.State.Lost():
		facts.DeviceLost = w.lossText(now)
	case now.State == devices.Openable:
		facts.DeviceOpen = true
	}
	return facts
}

// accounted returns the driver's own record of the attempt's highest memory use.
func (w *worker) accounted(ctx context.Context) (peak units.Bytes, exact bool) {
	ctx, enough := context.WithTimeout(ctx, monitor.SampleTimeout)
	defer enough()
	return w.deps.Monitor.Accounted(ctx, w.key())
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
func (w *worker) overranBeside(ctx context.Context) (text string) {
	_ = w.deps.Loop.Look(ctx, func(s *mapper.State) {
		for _, grant := range w.launch.Grants {
			for _, g := range s.GPUs() {
				if g.ID != grant.GPU {
					continue
				}
				for _, r := range g.Residents {
					if r.Task != w.launch.Task && r.Used > r.Grant {
						text = fmt.Sprintf("task %d used %s of the %s allocated to it on GPU %d", r.Task, r.Used, r.Grant, g.Index)
					}
				}
			}
		}
	})
	return text
}

// memories returns the capacities of the attempt's GPUs, by UUID.
func (w *worker) memories() map[string]units.Bytes {
	all := map[string]units.Bytes{}
	for _, g := range w.grants() {
		all[string(g.GPU)] = w.deps.GPUs.Capacity(g.GPU)
	}
	return all
}

// classify returns how a container that ran has ended.
func (w *worker) classify(ctx context.Context, exit containers.Exit, tail *containers.Tail, outage bool) ending {
	// A container that had ended when this daemon found it may have gone down with the
	// engine, or with the machine. No clock is compared, because somebody may have set
	// it.
	unseen := w.adopted != nil && w.adopted.State == containers.StateExited && !exit.Finished.IsZero()
	if exit.Code != 0 && !w.stopRequested() && !unseen && exit.Error == "" && w.erred.Load() > 0 {
		w.catchUp(ctx, exit)
	}
	v := containers.Classify(exit, tail.Lines(), w.endFacts(ctx, exit, tail, outage, unseen))
	if v.Class == containers.ClassProgram && v.CUDA && w.mps.ServerFailed(ctx) {
		v.Class, v.Message = containers.ClassMPSFault, "the MPS server failed under it, by this task's doing or another's; "+v.Message
	}
	if w.withoutGPU.Load() && !w.stopRequested() {
		v.Class, v.Message = containers.ClassMPSFault, "it could not reach the MPS server and went on without its GPU"
	}
	if v.Class == containers.ClassMPSFault {
		w.deps.Running.Go(func() { w.mps.Repair(ctx) })
	}
	if v.Start != nil {
		return w.unstarted(v.Start, v.Start.Text)
	}
	if why := w.lostWhy(); why != "" && !w.stopRequested() {
		v.Class, v.Message = containers.ClassInfrastructure, "lost while it was suspended: "+why
	}
	end := ending{class: model.Class(v.Class), code: v.Code, message: v.Message, demand: units.Bytes(v.Demand), unconfirmed: !v.Confirmed, verdict: &record.AttemptEnd{Remark: v.Remark, Witnesses: v.Witnesses}}
	if unseen {
		end.finished = w.deps.Clock.FromWall(exit.Finished)
	}
	return end
}

// exited returns the end of the attempt as a change, with its peak, curve and
// energy.
func (w *worker) exited(end ending) *loop.Change {
	task, attempt := w.launch.Task, w.launch.Attempt
	peak, seen := w.deps.Monitor.Observed(task, attempt)
	untouched := w.deps.Monitor.NeverTouched(gpu.AttemptKey{Task: task, Attempt: attempt})
	w.deps.Monitor.Forget(task, attempt)
	params := w.following.Parameters()
	host := w.deps.Memory.Forget(gpu.AttemptKey{Task: task, Attempt: attempt})
	if _, share := w.booked(); end.class == model.ExitHostOOM {
		host = max(host, share.Limit) // the container reached its limit
	}
	joules := w.deps.Energy.Stop(w.deps.Clock.Now(), gpu.AttemptKey{Task: task, Attempt: attempt})
	ev := model.Exited{
		At: w.deps.Clock.Now(), Task: task, Attempt: attempt, Class: end.class, Code: end.code,
		Peak: peak, HostPeak: host, Demand: end.demand, Message: end.message, Finished: end.finished, Fault: end.fault,
	}
	if w.rec.Job != nil && (end.fault == nil || end.fault.Scope != model.ScopeNamespace) { // if a full namespace refused the pod, the pod still waits
		ev.Again = control.NextPod
	}
	ev.Unconfirmed = end.unconfirmed && end.class == model.ExitGPUOOM
	ev.Filled = seen.Preallocates(w.deps.GPUs.Smallest(w.grants()), w.deps.SampleEvery, ev.At)
	return &loop.Change{Keep: true, Events: func(units.Instant) ([]model.Event, []*record.Record, error) {
		if rec, _ := w.deps.Records.Get(task); rec != nil && (seen != nil || params != nil || joules > 0 || untouched || end.verdict != nil) {
			return []model.Event{ev}, []*record.Record{rec.WithCurve(attempt, seen).WithParams(params).WithEnergy(attempt, joules).WithUntouched(attempt, untouched).WithEnd(attempt, end.verdict)}, nil
		}
		return []model.Event{ev}, nil, nil
	}}
}
