package breaker

import (
	"fmt"

	"carma/mapper/ledger"
	"carma/mapper/model"
)

// Breakers holds the failed starts of the engine, the GPUs and the namespaces, and the probes
// that test whether they work again.
type Breakers struct {
	*ledger.Ledger
	engineDown        model.Reason   // zero if the engine is up
	engineBreaker     *model.Breaker // breaker of the engine, or nil if containers start
	complaints        *complaints    // starts that failed for an unknown reason, or nil
	canary            canary
	namespaceBreakers []*model.Breaker // full namespaces, in order, see namespace.go
	probeTask         int              // which tasks the cycle may launch, see probes.go
}

// New returns breakers without any failed start.
func New(l *ledger.Ledger) *Breakers { return &Breakers{Ledger: l, probeTask: AllTasks} }

// Clone returns a copy for a copy of the ledger.
func (b *Breakers) Clone(l *ledger.Ledger) *Breakers {
	c := &Breakers{Ledger: l, engineDown: b.engineDown, engineBreaker: b.engineBreaker.Clone(), complaints: b.complaints.clone(), canary: b.canary, probeTask: b.probeTask}
	c.namespaceBreakers = make([]*model.Breaker, len(b.namespaceBreakers))
	for n, i := range b.namespaceBreakers {
		c.namespaceBreakers[n] = i.Clone()
	}
	return c
}

// Snapshot is the breakers' section of a snapshot.
type Snapshot struct {
	EngineDown model.Reason     `json:"engine_down,omitzero"`
	Sick       *model.Breaker   `json:"sick,omitempty"`
	Complaints *complaints      `json:"complaints,omitempty"`
	Canary     canary           `json:"canary,omitzero"`
	Full       []*model.Breaker `json:"full,omitempty"`
}

// Save returns the section of the snapshot. Its lists are shared: do not change them.
func (b *Breakers) Save() Snapshot {
	return Snapshot{EngineDown: b.engineDown, Sick: b.engineBreaker, Complaints: b.complaints, Canary: b.canary, Full: b.namespaceBreakers}
}

// Restore replaces the breakers by a section of a snapshot, or returns an error if the
// section is inconsistent.
func (b *Breakers) Restore(snap Snapshot) error {
	b.engineDown, b.engineBreaker, b.complaints, b.canary, b.namespaceBreakers = snap.EngineDown, snap.Sick, snap.Complaints, snap.Canary, snap.Full
	if !validFull(b.namespaceBreakers) {
		return fmt.Errorf("a full namespace is there twice, or is not tested again")
	}
	return nil
}

// StartFailed counts a failed start against the engine or GPUs.
func (b *Breakers) StartFailed(t *model.Task, a *model.Attempt, f model.Fault) {
	if f.Scope == model.ScopeNamespace {
		b.fills(t, f)
		b.inconclusive(t.ID)
		return
	}
	if i := b.Namespace(t.Namespace); i != nil && i.Testing == t.ID {
		b.probeSoon(i)
	}
	if f.Scope == model.ScopeUnknown {
		b.complains(t, f)
		return
	}
	if f.Scope != model.ScopeGPU {
		b.engineBreaker = b.recordFailure(b.engineBreaker, t, f)
		return
	}
	for _, grant := range a.Grants {
		if f.Concerns(grant.GPU) {
			g := b.GPU(grant.GPU)
			g.Breaker = b.recordFailure(g.Breaker, t, f)
			g.Changed()
		}
	}
}

// recordFailure adds a failed start to a breaker.
func (b *Breakers) recordFailure(i *model.Breaker, t *model.Task, f model.Fault) *model.Breaker {
	if i == nil {
		i = &model.Breaker{Since: b.Now()}
	}
	i.Fault, i.Failures = f, i.Failures+1
	i.AddFailed(t.ID)
	switch {
	case i.Paused() && i.Testing == t.ID:
		i.Wait, i.Testing = min(2*i.Wait, ledger.MaxProbeInterval), 0
		b.ProbeAt(i, b.Now().Add(i.Wait))
	case !i.Paused() && len(i.Tasks) >= SickTasks:
		i.Wait = b.NextProbe()
		b.ProbeAt(i, b.Now().Add(i.Wait))
	}
	b.CapacityChanged()
	b.MarkDirty()
	return i
}

// Launched records the launch of a task as a probe of its engine, its namespace and its
// GPUs, if their breakers are open.
func (b *Breakers) Launched(t *model.Task, gpus []*model.GPU) {
	b.probeTargets(b.engineBreaker, t.ID)
	b.testsNamespace(t)
	for _, g := range gpus {
		b.probeTargets(g.Breaker, t.ID)
	}
}

// EngineChanged records whether the engine is up, or why it is not.
func (b *Breakers) EngineChanged(up bool, reason string) {
	b.engineDown = model.Reason{}
	if up {
		b.probeAgain()
	} else {
		b.engineDown = model.Reason{Code: model.ReasonEngineDown, Text: reason}
	}
}

// IsEngineDown reports whether the engine does not answer.
func (b *Breakers) IsEngineDown() bool { return b.engineDown.Code != "" }

// IsEnginePaused reports whether only probes may be launched on the engine.
func (b *Breakers) IsEnginePaused() bool { return b.engineBreaker.Paused() }

// IsEngineOpen reports whether nothing may be launched on the engine now.
func (b *Breakers) IsEngineOpen() bool { return b.engineBreaker.Open(b.Now()) }

// probeTargets records a launch on a paused engine or GPU as its probe. If the probe
// takes long, for example to pull its image, the next one may start after [ledger.MaxProbeInterval].
func (b *Breakers) probeTargets(i *model.Breaker, id model.TaskID) {
	if i.Paused() {
		i.Testing = id
		b.ProbeAt(i, b.Now().Add(ledger.MaxProbeInterval))
		b.CapacityChanged()
	}
}

// EndedUnstarted handles the end of an attempt whose start was not seen. If it was a probe and
// was inconclusive, because it was stopped or failed for another reason, another probe
// may follow.
func (b *Breakers) EndedUnstarted(t *model.Task, a *model.Attempt) {
	switch a.Class {
	case model.ExitInfrastructure, model.ExitCannotStart, model.ExitStopped:
	default:
		b.StartSucceeded(t, a) // its program has run
		return
	}
	b.inconclusive(t.ID)
}

// inconclusive allows another probe after a probe without a result.
func (b *Breakers) inconclusive(id model.TaskID) {
	for _, i := range b.all() {
		if i.Testing == id {
			b.probeSoon(i)
		}
	}
}

func (b *Breakers) probeSoon(i *model.Breaker) {
	i.Testing = 0
	b.ProbeAt(i, b.Now())
	b.CapacityChanged()
	b.MarkDirty()
}

// all returns the breakers of the engine, the GPUs and the full namespaces, in
// order.
func (b *Breakers) all() []*model.Breaker {
	var all []*model.Breaker
	if b.engineBreaker != nil {
		all = append(all, b.engineBreaker)
	}
	for _, g := range b.GPUList() {
		if g.Breaker != nil {
			all = append(all, g.Breaker)
		}
	}
	return append(all, b.namespaceBreakers...)
}

// StartSucceeded closes the breakers of the engine and of the GPUs on which a task has
// started.
func (b *Breakers) StartSucceeded(t *model.Task, a *model.Attempt) {
	t.StartFailures, t.StartFailuresWhileOthersStart, t.From = 0, 0, model.QueuePlace{}
	b.taskStarted(t.ID)
	if i := b.Namespace(t.Namespace); i != nil && i.Testing == t.ID {
		b.opens(i)
	}
	b.engineBreaker = b.closeBreakers(b.engineBreaker, t.ID)
	for _, grant := range a.Grants {
		g := b.GPU(grant.GPU)
		g.Breaker = b.closeBreakers(g.Breaker, t.ID)
	}
}

// closeBreakers closes a breaker, because a task has started. A failed start counts
// against each task that could not start meanwhile.
func (b *Breakers) closeBreakers(i *model.Breaker, started model.TaskID) *model.Breaker {
	if i == nil {
		return nil
	}
	for _, id := range i.Tasks {
		if t := b.TaskByID(id); t != nil && id != started {
			t.StartFailuresWhileOthersStart++
		}
	}
	if i.Paused() {
		b.letGo(i)
	}
	b.CapacityChanged()
	b.MarkDirty()
	return nil
}

// letGo ends the back-off of the tasks whose starts have failed.
func (b *Breakers) letGo(i *model.Breaker) {
	for _, id := range i.Tasks {
		if t := b.TaskByID(id); t != nil && t.StartFailures > 0 {
			t.NotBefore = 0
		}
	}
}

// probeAgain allows a probe of everything unhealthy at once, because the engine or the
// daemon has restarted.
func (b *Breakers) probeAgain() {
	for _, i := range b.all() {
		b.letGo(i)
		if i.Paused() {
			i.Wait = b.NextProbe()
			b.ProbeAt(i, b.Now())
		}
	}
	if b.canary.Next > 0 {
		b.canaryAt(b.Now())
	}
	b.CapacityChanged()
}

const (
	// SickTasks is the number of tasks with consecutive failed starts after which
	// launching pauses.
	SickTasks = 3
	// sickStarts is the number of consecutive failed starts, also of one task, after
	// which an engine or GPU is reported as unhealthy.
	sickStarts = 3
)
