package mapper

import (
	"fmt"

	"carma/mapper/attempt"
	"carma/mapper/breaker"
	"carma/mapper/explain"
	"carma/mapper/fairshare"
	"carma/mapper/learn"
	"carma/mapper/ledger"
	"carma/mapper/lifecycle"
	"carma/mapper/model"
	"carma/mapper/observe"
	"carma/mapper/place"
	"carma/mapper/policy"
	"carma/mapper/predict"
	"carma/mapper/preempt"
	"carma/mapper/queue"
	"carma/mapper/recovery"
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
	observer  *observe.Observer
	lifecycle *lifecycle.Lifecycle
	attempts  *attempt.Attempts
	recovery  *recovery.Recovery
	scheduler *scheduler

	paused *model.Cordon // of launching, or nil
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

// wire makes the parts that hold nothing between two steps, the attempts and the scheduler.
func (s *State) wire() {
	s.preempter = preempt.New(s.Ledger, s.predictor, s.queue, s.reserve, s.placer)
	s.explainer = explain.New(s.Ledger, s.users, s.breakers, s.queue, s.reserve, s.placer)
	s.learner = learn.New(s.Ledger, s.predictor, s.queue, s.placer, s.preempter)
	s.observer = observe.New(s.Ledger, s.users, s.predictor, s.placer, s.preempter)
	s.lifecycle = lifecycle.New(s.Ledger, s.users, s.breakers, s.queue, s.reserve, s.placer, s.preempter, s.learner, s.explainer)
	s.attempts = attempt.New(s.Ledger, s.users, s.predictor, s.breakers, s.queue, s.reserve, s.placer, s.preempter, s.lifecycle)
	s.recovery = recovery.New(s.Ledger, s.users, s.predictor, s.breakers, s.queue, s.learner, s.observer, s.lifecycle, s.attempts)
	s.scheduler = &scheduler{Ledger: s.Ledger, users: s.users, predictor: s.predictor, breakers: s.breakers, queue: s.queue, reserve: s.reserve, placer: s.placer, preempter: s.preempter, learner: s.learner, observer: s.observer, attempts: s.attempts}
}

// Step applies ev and returns what must now be done, in order. Equal states and equal
// events give equal decisions. Time never runs backwards: an event with an older instant
// than the last one happens now. The caller may keep the decisions.
func (s *State) Step(ev model.Event) []model.Decision {
	s.take(ev)
	if s.paused == nil {
		s.scheduler.schedule()
	}
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
		s.observer.GPUsFound(ev)
	case model.HostsFound:
		s.observer.HostsFound(ev)
	case model.HelpersBooked:
		s.observer.HelpersBooked(ev)
	case model.EngineChanged:
		s.breakers.EngineChanged(ev.Up, ev.Reason)
		s.MarkDirty()
	case model.TaskSubmitted:
		s.lifecycle.Submitted(ev)
	case model.Estimated:
		s.lifecycle.Estimated(ev)
	case model.Sampled:
		s.observer.Sampled(ev)
	case model.ThroughputReported:
		s.learner.ThroughputReported(ev)
	case model.LaunchAccepted:
		s.attempts.LaunchAccepted(ev)
	case model.Started:
		s.attempts.Started(ev)
	case model.Exited:
		s.recovery.Exited(ev)
	case model.Cancel:
		s.lifecycle.Cancel(ev)
	case model.TerminalInput:
		s.lifecycle.TerminalInput(ev)
	case model.VacatesOnRequest:
		s.attempts.VacatesOnRequest(ev)
	case model.SuspendedOutOfBand:
		s.attempts.SuspendedOutOfBand(ev)
	case model.DevicesChecked:
		s.observer.DevicesChecked(ev)
	case model.SuspendAsked:
		s.preempter.SuspendRequested(ev)
	case model.SuspendDone:
		s.attempts.SuspendDone(ev)
	case model.ResumeAsked:
		s.lifecycle.ResumeRequested(ev)
	case model.Resumed:
		s.attempts.Resumed(ev)
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
		s.observer.GPUsReset(ev)
	case model.LaunchingPaused:
		s.launchingPaused(ev)
	case model.Reserved:
		s.reserve.Add(ev)
	case model.Unreserved:
		s.placer.DropReservations(func(r *model.Reservation) bool { return r.ID == ev.ID })
	case model.Pinned:
		s.preempter.Pin(ev)
	case model.Removed:
	case model.OrphanAdopted:
		s.attempts.AdoptOrphan(ev)
	case model.EndRecovered:
		s.attempts.EndRecovered(ev)
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
	s.scheduler.again = 0
	s.attempts.Configured()
	s.queue.Configured()
	s.preempter.SetSlotTimers()
	s.preempter.HandleAllIdle()
}
