package mapper

import (
	"fmt"

	"carma/internal/units"
	"carma/mapper/breaker"
	"carma/mapper/explain"
	"carma/mapper/fairshare"
	"carma/mapper/learn"
	"carma/mapper/ledger"
	"carma/mapper/lifecycle"
	"carma/mapper/model"
	"carma/mapper/place"
	"carma/mapper/policy"
	"carma/mapper/predict"
	"carma/mapper/preempt"
	"carma/mapper/queue"
	"carma/mapper/reserve"
)

// State is the whole state of the mapper. It is not safe for concurrent use: one
// goroutine owns it.
type State struct {
	*ledger.Ledger

	users     *fairshare.Users
	predictor *predict.Predictor
	breakers  *breaker.Breakers
	queue     *queue.Queue
	reserve   *reserve.Reservations
	placer    *place.Placer
	learner   *learn.Learner
	explainer *explain.Explainer
	preempter *preempt.Preempter
	lifecycle *lifecycle.Lifecycle

	paused    *model.Cordon    // of launching, or nil
	notBefore units.Instant    // no launch before this (option Interval)
	inflight  []inflightLaunch // launches in flight to the engine, in order
	again     units.Instant    // when the queues are scheduled again for policy carma

	step step
}

// step is the working space of a step; it is not used between steps.
type step struct {
	critical []*model.Task
}

// New returns an empty state. Options must be valid.
func New(opt model.Options) *State {
	p, err := policy.Named(opt.Policy)
	if err != nil {
		panic("mapper.New: " + err.Error())
	}
	l := ledger.New(opt, p.IdleOnly)
	s := &State{Ledger: l, users: fairshare.New(l), predictor: predict.New(l), breakers: breaker.New(l)}
	s.queue = queue.New(l, s.users, s.predictor)
	s.reserve = reserve.New(l, s.predictor, s.queue)
	s.placer = place.New(l, s.predictor, s.queue, s.reserve, p)
	s.wire()
	return s
}

// wire makes the parts that hold nothing but references to others.
func (s *State) wire() {
	s.preempter = preempt.New(s.Ledger, s.users, s.predictor, s.queue, s.reserve, s.placer)
	s.explainer = explain.New(s.Ledger, s.users, s.breakers, s.queue, s.reserve, s.placer)
	s.learner = learn.New(s.Ledger, s.predictor, s.queue, s.placer, s.preempter)
	s.lifecycle = lifecycle.New(s.Ledger, s.users, s.breakers, s.queue, s.reserve, s.placer, s.preempter, s.learner, s.explainer)
}

// Step applies ev and returns what must now be done, in order. Equal states and equal
// events give equal decisions. Time never runs backwards: an event with an older instant
// than the last one happens now. The caller may keep the decisions.
func (s *State) Step(ev model.Event) []model.Decision {
	s.take(ev)
	s.schedule()
	s.NextWake()
	return s.Decisions()
}

// take applies an event, except its effect on the queues.
func (s *State) take(ev model.Event) {
	s.Begin(ev.When())
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
		s.lifecycle.Submitted(ev)
	case model.Estimated:
		s.lifecycle.Estimated(ev)
	case model.Sampled:
		s.sampled(ev)
	case model.ThroughputReported:
		s.learner.ThroughputReported(ev)
	case model.LaunchAccepted:
		s.launchAccepted(ev)
	case model.Started:
		s.started(ev)
	case model.Exited:
		s.exited(ev)
	case model.Cancel:
		s.lifecycle.Cancel(ev)
	case model.TerminalInput:
		s.lifecycle.TerminalInput(ev)
	case model.VacatesOnRequest:
		s.vacatesOnRequest(ev)
	case model.SuspendedOutOfBand:
		s.suspendedOutOfBand(ev)
	case model.DevicesChecked:
		s.devicesChecked(ev)
	case model.SuspendAsked:
		s.preempter.SuspendRequested(ev)
	case model.SuspendDone:
		s.suspended(ev)
	case model.ResumeAsked:
		s.lifecycle.ResumeRequested(ev)
	case model.Resumed:
		s.resumed(ev)
	case model.HoldChanged:
		s.lifecycle.HoldChanged(ev)
	case model.RequeueRequested:
		s.lifecycle.RequeueRequested(ev)
	case model.TaskUpdated:
		s.lifecycle.TaskUpdated(ev)
	case model.QueueMoved:
		s.lifecycle.QueueMoved(ev)
	case model.GPUsCordoned:
		s.gpusCordoned(ev)
	case model.CanaryEnded:
		s.breakers.CanaryEnded(ev)
	case model.GPUsReset:
		s.gpusReset(ev)
	case model.LaunchingPaused:
		s.launchingPaused(ev)
	case model.Reserved:
		s.reserve.Add(ev)
	case model.Unreserved:
		s.unreserved(ev)
	case model.Pinned:
		s.preempter.Pin(ev)
	case model.Removed:
	case model.OrphanAdopted:
		s.adoptOrphan(ev)
	case model.EndRecovered:
		s.endRecovered(ev)
	case model.TimerFired:
		s.SetWake(0)
	default:
		panic(fmt.Sprintf("mapper: Step of a %T; events are passed by value", ev))
	}
	s.preempter.EnforceGrants()
	s.lifecycle.FollowUp()
	s.expire() // after the event: an attempt that ends exactly at its limit has met it
}

func (s *State) configure(ev model.Configured) {
	s.SetDecisionFormat(ev.Format)
	if Validate(ev.Options) != nil {
		return // validation is the caller's duty; keep the present options
	}
	s.users.Settle(s.Now(), s.Ledger.Options().HalfLife())
	p, _ := policy.Named(ev.Options.Policy)
	s.Configure(ev.Options, p.IdleOnly)
	s.placer.SetPolicy(p)
	if !s.Ledger.Options().Preempts() {
		s.preempter.ClearAllNominations()
	}
	s.again = 0
	if s.Ledger.Options().LaunchesAtOnce == 0 { // a later limit counts the launches from then on
		s.inflight = nil
	}
	if next := s.Now().Add(s.Ledger.Options().Interval); next < s.notBefore { // a shorter interval counts at once
		s.notBefore = next
		s.SetTimer(next, ledger.Timer{})
	}
	s.queue.Configured()
	s.preempter.SetSlotTimers()
	s.preempter.HandleAllIdle()
}

func (s *State) started(ev model.Started) {
	t := s.TaskByID(ev.Task)
	if t == nil || t.Current() == nil || t.Current().N != ev.Attempt || t.Current().Started != 0 {
		return
	}
	s.onStarted(t, t.Current(), s.Now())
}

// onStarted records that the container of an attempt has run since an instant.
func (s *State) onStarted(t *model.Task, a *model.Attempt, since units.Instant) {
	a.Started, t.PacedAt, t.Idle = since, s.Now(), model.Idleness{}
	s.breakers.StartSucceeded(t, a)
	s.lifecycle.TaskStarted(t.ID)
	if t.Phase == model.Launching {
		t.Phase = model.Running
	}
	for _, grant := range a.Grants {
		g := s.GPU(grant.GPU)
		g.ChangedAt = s.Now()
		g.InvalidateForecast()
		g.Resident(t.ID).WarmUntil = s.Now().Add(s.Ledger.Options().WarmUp)
		g.Settle()
	}
	s.SetTimer(s.Now().Add(s.Ledger.Options().WarmUp), ledger.Timer{})
	s.preempter.SetPreemptionTimers(t)
	for _, grant := range a.Grants { // samples come only when something changes
		s.preempter.CheckActivity(s.GPU(grant.GPU))
	}
	if ends := s.SlotEnds(t); ends != units.Never {
		s.SetTimer(ends, ledger.Timer{})
	}
	if len(t.Expected.Loads) == 0 {
		s.SetTimer(s.Now().Add(model.SettleTime), ledger.Timer{})
	}
	if s.placer.Predicts() {
		s.SetTimer(since.Add(place.TellWithin), ledger.Timer{})
	}
	if t.TimeLimit > 0 {
		s.SetTimer(since.Add(t.TimeLimit), ledger.Timer{Task: t.ID, Attempt: a.N})
	}
}
