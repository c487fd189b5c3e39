package mapper

import (
	"fmt"

	"carma/internal/units"
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

	paused    *Cordon          // of launching, or nil
	notBefore units.Instant    // no launch before this (option Interval)
	inflight  []inflightLaunch // launches in flight to the engine, in order
	again     units.Instant    // when the queues are scheduled again for policy carma

	step step
}

// step is the working space of a step; it is not used between steps.
type step struct {
	endings  []ending // until followUp
	critical []*Task
}

// New returns an empty state. Options must be valid.
func New(opt Options) *State {
	opt = opt.own()
	p, err := policyNamed(opt.Policy)
	if err != nil {
		panic("mapper.New: " + err.Error())
	}
	l := &ledger{agenda: agenda{format: DecisionFormat}, opt: opt, idleOnly: p.idleOnly, gpus: []*GPU{}, byID: map[GPUID]*GPU{}, taskIndex: newTaskIndex()}
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
func (s *State) Step(ev Event) []Decision {
	s.take(ev)
	s.schedule()
	s.setTimer()
	return s.out
}

// take applies an event, except its effect on the queues.
func (s *State) take(ev Event) {
	s.now = max(s.now, ev.when())
	s.out = nil
	switch ev := ev.(type) {
	case Configured:
		s.configure(ev)
	case GPUsFound:
		s.found(ev)
	case HostsFound:
		s.hostsFound(ev)
	case HelpersBooked:
		s.helpersBooked(ev)
	case EngineChanged:
		s.engineChanged(ev)
	case TaskSubmitted:
		s.submitted(ev)
	case Estimated:
		s.estimated(ev)
	case Sampled:
		s.sampled(ev)
	case ThroughputReported:
		s.learner.throughputReported(ev)
	case LaunchAccepted:
		s.launchAccepted(ev)
	case Started:
		s.started(ev)
	case Exited:
		s.exited(ev)
	case Cancel:
		s.cancel(ev)
	case TerminalInput:
		s.terminalInput(ev)
	case VacatesOnRequest:
		s.vacatesOnRequest(ev)
	case SuspendedOutOfBand:
		s.suspendedOutOfBand(ev)
	case DevicesChecked:
		s.devicesChecked(ev)
	case SuspendAsked:
		s.preempter.suspendAsked(ev)
	case SuspendDone:
		s.suspended(ev)
	case ResumeAsked:
		s.resumeAsked(ev)
	case Resumed:
		s.resumed(ev)
	case HoldChanged:
		s.holdChanged(ev)
	case RequeueRequested:
		s.requeueRequested(ev)
	case TaskUpdated:
		s.taskUpdated(ev)
	case QueueMoved:
		s.queueMoved(ev)
	case GPUsCordoned:
		s.gpusCordoned(ev)
	case CanaryEnded:
		s.breakers.canaryEnded(ev)
	case GPUsReset:
		s.gpusReset(ev)
	case LaunchingPaused:
		s.launchingPaused(ev)
	case Reserved:
		s.queue.reserved(ev)
	case Unreserved:
		s.unreserved(ev)
	case Pinned:
		s.preempter.pinned(ev)
	case Removed:
	case OrphanAdopted:
		s.adoptOrphan(ev)
	case EndRecovered:
		s.endRecovered(ev)
	case TimerFired:
		s.wake = 0
	default:
		panic(fmt.Sprintf("mapper: Step of a %T; events are passed by value", ev))
	}
	s.preempter.enforceGrants()
	s.followUp()
	s.expire() // after the event: an attempt that ends exactly at its limit has met it
}

func (a *agenda) decide(d Decision) {
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
		a.decide(SetTimer{At: next})
	}
}

func (s *State) configure(ev Configured) {
	s.format = ev.Format
	if ev.Options.Validate() != nil {
		return // validation is the caller's duty; keep the present options
	}
	s.users.settle(s.now, s.opt.halfLife())
	s.opt, s.dirty = ev.Options, true
	s.placer.dropCache()
	s.opt = s.opt.own()
	s.placer.policy, _ = policyNamed(ev.Options.Policy)
	s.idleOnly = s.placer.policy.idleOnly
	if s.queue.waiting.byPriority = s.opt.byPriority(); !s.opt.preempts() {
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
	s.queue.resort(func(*Task) bool { return true })
	if by := s.queue.takesTurns(); by != s.queue.waiting.turns {
		s.queue.waiting.refile(by)
	}
	s.preempter.watchSlots()
	s.preempter.judgeIdles()
}

// enqueue puts a task without grants into its queue.
func (s *State) enqueue(t *Task, phase Phase) { s.enqueueAt(t, phase, s.now) }

func (s *State) enqueueAt(t *Task, phase Phase, at units.Instant) {
	t.Phase, t.QueuedAt = phase, at
	t.Rank = s.queue.rankOf(t)
	s.placer.retry(t)
	s.users.make(t.userAccount()).waiting++
	s.queue.waiting.add(t)
	s.queue.onEnqueue(t)
	s.dirty = s.dirty || s.queue.inSight(t)
	if t.NotBefore > s.now {
		s.at(t.NotBefore, timer{})
	}
}

func (s *State) started(ev Started) {
	t := s.tasks[ev.Task]
	if t == nil || t.Current() == nil || t.Current().N != ev.Attempt || t.Current().Started != 0 {
		return
	}
	s.onStarted(t, t.Current(), s.now)
}

// onStarted records that the container of an attempt has run since an instant.
func (s *State) onStarted(t *Task, a *Attempt, since units.Instant) {
	a.Started, t.PacedAt, t.Idle = since, s.now, Idleness{}
	s.breakers.startSucceeded(t, a)
	s.announceStart(t.ID)
	if t.Phase == Launching {
		t.Phase = Running
	}
	for _, grant := range a.Grants {
		g := s.byID[grant.GPU]
		g.ChangedAt = s.now
		g.forget()
		g.resident(t.ID).WarmUntil = s.now.Add(s.opt.WarmUp)
		g.settle()
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
		s.at(s.now.Add(settling), timer{})
	}
	if s.placer.policy.pick != nil {
		s.at(since.Add(tellWithin), timer{})
	}
	if t.TimeLimit > 0 {
		s.at(since.Add(t.TimeLimit), timer{Task: t.ID, Attempt: a.N})
	}
}
