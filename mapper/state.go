package mapper

import (
	"fmt"

	"carma/internal/units"
	"carma/mapper/model"
)

// State is the whole state of the mapper. It is not safe for concurrent use: one
// goroutine owns it.
type State struct {
	*ledger

	users     *users
	predictor *predictor
	breakers  *breakers
	queue     *schedulingQueue
	placer    *placer
	learner   *learner
	preempter *preempter

	paused    *model.Cordon    // of launching, or nil
	notBefore units.Instant    // no launch before this (option Interval)
	inflight  []inflightLaunch // launches in flight to the engine, in order
	again     units.Instant    // when the queues are scheduled again for policy carma

	step step
}

// step is the working space of a step; it is not used between steps.
type step struct {
	endings  []ending // until followUp
	critical []*model.Task
}

// New returns an empty state. Options must be valid.
func New(opt model.Options) *State {
	opt = opt.Clone()
	p, err := policyNamed(opt.Policy)
	if err != nil {
		panic("mapper.New: " + err.Error())
	}
	l := &ledger{agenda: agenda{format: model.DecisionFormat}, opt: opt, idleOnly: p.idleOnly, gpus: []*model.GPU{}, byID: map[model.GPUID]*model.GPU{}, taskIndex: newTaskIndex()}
	s := &State{ledger: l, users: newUsers(l), predictor: newPredictor(l), breakers: newBreakers(l)}
	s.queue = newSchedulingQueue(l, s.users, s.predictor)
	s.placer = newPlacer(l, s.predictor, s.queue, p)
	s.wire()
	return s
}

// wire makes the parts that hold nothing but references to others.
func (s *State) wire() {
	s.preempter = &preempter{ledger: s.ledger, users: s.users, predictor: s.predictor, queue: s.queue, placer: s.placer}
	s.learner = &learner{s.ledger, s.users, s.predictor, s.queue, s.placer, s.preempter}
}

// Step applies ev and returns what must now be done, in order. Equal states and equal
// events give equal decisions. Time never runs backwards: an event with an older instant
// than the last one happens now. The caller may keep the decisions.
func (s *State) Step(ev model.Event) []model.Decision {
	s.take(ev)
	s.schedule()
	s.setTimer()
	return s.out
}

// take applies an event, except its effect on the queues.
func (s *State) take(ev model.Event) {
	s.now = max(s.now, ev.When())
	s.out = nil
	switch ev := ev.(type) {
	case model.Configured:
		s.configure(ev)
	case model.GPUsFound:
		s.found(ev)
	case model.HostsFound:
		s.hostsFound(ev)
	case model.HelpersBooked:
		s.helpersBooked(ev)
	case model.EngineChanged:
		s.engineChanged(ev)
	case model.TaskSubmitted:
		s.submitted(ev)
	case model.Estimated:
		s.estimated(ev)
	case model.Sampled:
		s.sampled(ev)
	case model.ThroughputReported:
		s.learner.throughputReported(ev)
	case model.LaunchAccepted:
		s.launchAccepted(ev)
	case model.Started:
		s.started(ev)
	case model.Exited:
		s.exited(ev)
	case model.Cancel:
		s.cancel(ev)
	case model.TerminalInput:
		s.terminalInput(ev)
	case model.VacatesOnRequest:
		s.vacatesOnRequest(ev)
	case model.SuspendedOutOfBand:
		s.suspendedOutOfBand(ev)
	case model.DevicesChecked:
		s.devicesChecked(ev)
	case model.SuspendAsked:
		s.preempter.suspendAsked(ev)
	case model.SuspendDone:
		s.suspended(ev)
	case model.ResumeAsked:
		s.resumeAsked(ev)
	case model.Resumed:
		s.resumed(ev)
	case model.HoldChanged:
		s.holdChanged(ev)
	case model.RequeueRequested:
		s.requeueRequested(ev)
	case model.TaskUpdated:
		s.taskUpdated(ev)
	case model.QueueMoved:
		s.queueMoved(ev)
	case model.GPUsCordoned:
		s.gpusCordoned(ev)
	case model.CanaryEnded:
		s.breakers.canaryEnded(ev)
	case model.GPUsReset:
		s.gpusReset(ev)
	case model.LaunchingPaused:
		s.launchingPaused(ev)
	case model.Reserved:
		s.queue.reserved(ev)
	case model.Unreserved:
		s.unreserved(ev)
	case model.Pinned:
		s.preempter.pinned(ev)
	case model.Removed:
	case model.OrphanAdopted:
		s.adoptOrphan(ev)
	case model.EndRecovered:
		s.endRecovered(ev)
	case model.TimerFired:
		s.wake = 0
	default:
		panic(fmt.Sprintf("mapper: Step of a %T; events are passed by value", ev))
	}
	s.preempter.enforceGrants()
	s.followUp()
	s.expire() // after the event: an attempt that ends exactly at its limit has met it
}

func (a *agenda) decide(d model.Decision) {
	a.out = append(a.out, d)
	a.recorded.strike(d)
}

// setTimer returns the earliest timer to the caller if it has become earlier.
func (a *agenda) setTimer() {
	if len(a.timers) == 0 {
		return
	}
	if next := a.timers[0].At; a.wake == 0 || next < a.wake {
		a.wake = next
		a.decide(model.SetTimer{At: next})
	}
}

func (s *State) configure(ev model.Configured) {
	s.format = ev.Format
	if Validate(ev.Options) != nil {
		return // validation is the caller's duty; keep the present options
	}
	s.users.settle(s.now, s.opt.HalfLife())
	s.opt, s.dirty = ev.Options, true
	s.placer.dropCache()
	s.opt = s.opt.Clone()
	s.placer.policy, _ = policyNamed(ev.Options.Policy)
	s.idleOnly = s.placer.policy.idleOnly
	if s.queue.waiting.byPriority = s.opt.ByPriority(); !s.opt.Preempts() {
		s.preempter.clearAllNominations()
	}
	s.again = 0
	if s.opt.LaunchesAtOnce == 0 { // a later limit counts the launches from then on
		s.inflight = nil
	}
	if next := s.now.Add(s.opt.Interval); next < s.notBefore { // a shorter interval counts at once
		s.notBefore = next
		s.at(next, timer{})
	}
	s.queue.resort(func(*model.Task) bool { return true })
	if by := s.queue.takesTurns(); by != s.queue.waiting.turns {
		s.queue.waiting.refile(by)
	}
	s.preempter.watchSlots()
	s.preempter.judgeIdles()
}

// enqueue puts a task without grants into its queue.
func (s *State) enqueue(t *model.Task, phase model.Phase) { s.enqueueAt(t, phase, s.now) }

func (s *State) enqueueAt(t *model.Task, phase model.Phase, at units.Instant) {
	t.Phase, t.QueuedAt = phase, at
	t.Rank = s.queue.rankOf(t)
	s.placer.retry(t)
	s.users.make(t.UserAccount()).waiting++
	s.queue.waiting.add(t)
	s.queue.onEnqueue(t)
	s.dirty = s.dirty || s.queue.inSight(t)
	if t.NotBefore > s.now {
		s.at(t.NotBefore, timer{})
	}
}

func (s *State) started(ev model.Started) {
	t := s.tasks[ev.Task]
	if t == nil || t.Current() == nil || t.Current().N != ev.Attempt || t.Current().Started != 0 {
		return
	}
	s.onStarted(t, t.Current(), s.now)
}

// onStarted records that the container of an attempt has run since an instant.
func (s *State) onStarted(t *model.Task, a *model.Attempt, since units.Instant) {
	a.Started, t.PacedAt, t.Idle = since, s.now, model.Idleness{}
	s.breakers.startSucceeded(t, a)
	s.announceStart(t.ID)
	if t.Phase == model.Launching {
		t.Phase = model.Running
	}
	for _, grant := range a.Grants {
		g := s.byID[grant.GPU]
		g.ChangedAt = s.now
		g.InvalidateForecast()
		g.Resident(t.ID).WarmUntil = s.now.Add(s.opt.WarmUp)
		g.Settle()
	}
	s.at(s.now.Add(s.opt.WarmUp), timer{})
	s.preempter.notePreemptible(t)
	for _, grant := range a.Grants { // samples come only when something changes
		s.preempter.checkIdle(s.byID[grant.GPU])
	}
	if ends := s.slotEnds(t); ends != units.Never {
		s.at(ends, timer{})
	}
	if len(t.Expected.Loads) == 0 {
		s.at(s.now.Add(model.SettleTime), timer{})
	}
	if s.placer.policy.pick != nil {
		s.at(since.Add(tellWithin), timer{})
	}
	if t.TimeLimit > 0 {
		s.at(since.Add(t.TimeLimit), timer{Task: t.ID, Attempt: a.N})
	}
}
