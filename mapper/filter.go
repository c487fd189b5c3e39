package mapper

import (
	"slices"
	"time"

	"carma/internal/units"
)

// Rule names the precondition by which a GPU was rejected.
type Rule string

// The preconditions, in the order they are checked. A GPU that fails a later
// one is closer to being usable.
const (
	RuleFault    Rule = "fault"     // it has a fault, or was not found
	RuleSick     Rule = "sick"      // containers do not start on it
	RuleKept     Rule = "held"      // reserved for a task that has waited too long
	RuleAlone    Rule = "alone"     // another task has it exclusively
	RuleIdle     Rule = "idle"      // an idle GPU is needed, and it is not idle
	RuleForeign  Rule = "foreign"   // wanted exclusively, but other processes use it
	RuleMaxTasks Rule = "max-tasks" // as many tasks as allowed
	RuleMemory   Rule = "memory"    // the grant does not fit
	RuleMinFree  Rule = "min-free"  // less free memory than required for any task
	RuleSMACT    Rule = "smact"     // too busy
	RuleWarmUp   Rule = "warm-up"   // the newest task there is still warming up

	RuleSharing     Rule = "sharing"     // Lucid's sharing scores sum to too much
	RuleUtilization Rule = "utilization" // the expected GPU utilizations do
	RuleUnseen      Rule = "unseen"      // the activity of a task there is not known yet
	RuleSlowdown    Rule = "slowdown"    // a task would be slowed down too much
	RuleWait        Rule = "wait"        // waiting is expected to end sooner than sharing
)

var ruleOrder = []Rule{RuleFault, RuleClosed, RulePart, RulePinned, RuleSuspended, RuleSick, RuleKept, RuleAlone, RuleIdle, RuleForeign, RuleMaxTasks, RuleMemory, RuleReserved, RuleSharing, RuleUtilization, RuleUnseen, RuleSlowdown, RuleWait, RuleMinFree, RuleSMACT, RuleWarmUp}

// Rejection says why a GPU was rejected for a task. Which fields are set depends on the
// rule.
type Rejection struct {
	GPU   GPUID `json:"gpu"`
	Index int   `json:"index"`
	Rule  Rule  `json:"rule"`
	// Have, Need and Of are the memory committed or free, the memory needed
	// and the limit, for the memory rules.
	Have units.Bytes `json:"have,omitempty"`
	Need units.Bytes `json:"need,omitempty"`
	Of   units.Bytes `json:"of,omitempty"`
	// SMACT and Cap are set for RuleSMACT, Slowdown and Cap for RuleSlowdown. Allowed is
	// the configured cap if Cap is lower, so that the configured cap holds in the likely
	// worst case.
	SMACT    float64 `json:"smact,omitempty"`
	Slowdown float64 `json:"slowdown,omitempty"`
	Cap      float64 `json:"cap,omitempty"`
	Allowed  float64 `json:"allowed,omitempty"`
	// Learner is, for RuleMemory, a resident that has all free memory until its need is
	// known, or 0. Its need is known Span after it has begun to train.
	Learner TaskID        `json:"learner,omitempty"`
	Span    time.Duration `json:"span,omitempty"`
	// Task is the blocking task, for RuleKept, RuleAlone and RuleWarmUp, or the task that
	// would be slowed down, for RuleSlowdown, where 0 means the task itself.
	Task TaskID `json:"task,omitempty"`
	// Tasks is the number of tasks there, for RuleIdle, RuleMaxTasks and RuleWait.
	Tasks int `json:"tasks,omitempty"`
	// Fault is the fault of the GPU, for RuleFault and RuleSick, in the words of the
	// component that found it; Missing: the GPU was not found. Remedy says how to fix it,
	// for RuleSick.
	Fault   string `json:"fault,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
	Missing bool   `json:"missing,omitempty"`
	// Closed says who cordoned the GPU, for RuleClosed.
	Closed *Cordon `json:"closed,omitempty"`
	// Reserved is the reservation, for RuleReserved.
	Reserved *Reservation `json:"reserved,omitempty"`
}

// reject checks the preconditions for placing t on g and returns the first rule that
// rejects g, or "".
func (pl *placer) reject(t *Task, g *GPU) Rule {
	alone := pl.alone(t)
	switch {
	case g.Missing || g.FaultReason() != "":
		return RuleFault
	case g.Cordon != nil:
		return RuleClosed
	case t.GPUs > 1 && g.MIG:
		return RulePart
	case !t.mayGoTo(g.ID):
		return RulePinned
	case !pl.resumeTargets(t, g):
		return RuleSuspended
	case g.Breaker.shut(pl.now):
		return RuleSick
	case pl.nominatedForOther(t, g) || pl.reservedAgainst(t, g):
		return RuleKept
	case g.alone():
		return RuleAlone
	case (alone || g.Sharing == SharingAlone) && !g.idle():
		return RuleIdle
	case alone && g.otherProcesses() > pl.opt.Headroom:
		return RuleForeign
	case pl.full(g):
		return RuleMaxTasks
	case pl.freeFor(t, g) < max(pl.needOn(t, g), 1):
		return RuleMemory
	case len(pl.queue.reservations) > 0 && pl.queue.reservation(t, g) != nil:
		return RuleReserved
	}
	if pl.policy.gate != nil && !g.idle() {
		if rule := pl.policy.gate(pl, t, g); rule != "" {
			return rule
		}
	}
	return pl.rejectAny(g)
}

// rejectAny checks the preconditions that do not depend on the task.
func (l *ledger) rejectAny(g *GPU) Rule {
	switch {
	case g.Missing || g.FaultReason() != "":
		return RuleFault
	case g.Cordon != nil:
		return RuleClosed
	case g.Breaker.shut(l.now):
		return RuleSick
	case l.free(g) < l.opt.MinFree:
		return RuleMinFree
	case l.busy(g):
		return RuleSMACT
	case g.warming(l.now):
		return RuleWarmUp
	}
	return ""
}

// needOn returns the memory that must be free on a GPU to place a task there.
func (l *ledger) needOn(t *Task, g *GPU) units.Bytes {
	if g.idle() {
		return t.needs(g)
	}
	return t.needs(g) + l.opt.Margin
}

// needs returns the memory that a task is granted on a GPU: its next grant, and at least
// the share that it takes there by design.
func (t *Task) needs(g *GPU) units.Bytes {
	share := units.Bytes(min(max(t.Estimate.Share, 0), shareOne))
	return max(t.NextGrant, g.Capacity/shareOne*share+g.Capacity%shareOne*share/shareOne)
}

func (l *ledger) busy(g *GPU) bool {
	o := &l.opt
	if o.SMACTCap == 0 || g.idle() || g.SMACT < o.SMACTCap {
		return false
	}
	return o.SMOCCCap == 0 && o.DRAMACap == 0 ||
		o.SMOCCCap > 0 && g.SMOCC >= o.SMOCCCap || o.DRAMACap > 0 && g.DRAMA >= o.DRAMACap
}

func (l *ledger) full(g *GPU) bool { return l.opt.MaxTasks > 0 && len(g.Residents) >= l.opt.MaxTasks }

// rejection adds the figures to a rule that reject returned.
func (pl *placer) rejection(t *Task, g *GPU, rule Rule) Rejection {
	r := Rejection{GPU: g.ID, Index: g.Index, Rule: rule, Tasks: len(g.Residents)}
	switch rule {
	case RuleFault:
		r.Fault, r.Missing = g.FaultReason(), g.Missing
	case RuleClosed:
		r.Closed = g.Cordon
	case RuleReserved:
		r.Reserved = new(*pl.queue.reservation(t, g))
	case RuleSick:
		r.Fault, r.Remedy = g.Breaker.Fault.Cause, g.Breaker.Fault.Remedy
	case RuleKept:
		r.Task = pl.queue.reservedForTask(g)
	case RuleAlone:
		r.Task = g.Residents[0].Task
	case RuleForeign:
		r.Have = g.otherProcesses()
	case RuleMemory:
		r.Have, r.Need, r.Of = g.Capacity-pl.opt.Headroom-pl.freeFor(t, g), pl.needOn(t, g), g.Capacity-pl.opt.Headroom
		if i := slices.IndexFunc(g.Residents, func(r Resident) bool { return r.Learning }); i >= 0 {
			r.Learner, r.Span = g.Residents[i].Task, pl.opt.LearnMemory
		}
	case RuleMinFree:
		r.Have, r.Need = pl.free(g), pl.opt.MinFree
	case RuleSMACT:
		r.SMACT, r.Cap = g.SMACT, pl.opt.SMACTCap
	case RuleUnseen:
		r.Task = pl.closedTo(t, g)
	case RuleSlowdown:
		no := pl.refusal(t, g)
		r.Slowdown, r.Cap, r.Task = no.slowdown, no.most, no.task
		if allowed := pl.predictor.slowdownCap(); no.most < allowed {
			r.Allowed = allowed
		}
	case RuleWarmUp:
		for _, p := range g.Residents {
			if p.WarmUntil > pl.now {
				r.Task = p.Task
			}
		}
	}
	return r
}
