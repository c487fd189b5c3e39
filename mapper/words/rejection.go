package words

import (
	"fmt"
	"time"

	"carma/mapper"
	"carma/mapper/units"
)

// Rejection says why a GPU was turned down: "GPU 0 memory 31.2 of 40.0 GiB
// reserved, needs 12.3".
func Rejection(r mapper.Rejection) string {
	gpu := fmt.Sprintf("GPU %d", r.Index)
	switch {
	case r.Rule == mapper.RuleSlowdown && r.Task != 0:
		return "on " + gpu + " " + OnGPU(r)
	case r.Rule == mapper.RuleMemory && r.Learner != 0:
		return gpu + ": " + OnGPU(r)
	}
	return gpu + " " + OnGPU(r)
}

// OnGPU is a rejection where the GPU is named already, as in a table: "memory
// 31.2 of 40.0 GiB reserved, needs 12.3".
func OnGPU(r mapper.Rejection) string {
	if say := clauses[r.Rule]; say != nil {
		return say(r)
	}
	return "rejected: " + string(r.Rule)
}

// clauses has one for each rule about a GPU.
var clauses = map[mapper.Rule]func(mapper.Rejection) string{
	mapper.RuleFault: func(r mapper.Rejection) string {
		if r.Missing {
			return "is out of service: " + Missing
		}
		return "is out of service: " + r.Fault
	},
	mapper.RuleClosed: func(r mapper.Rejection) string {
		if r.Closed == nil {
			return "is drained"
		}
		return join("is drained by "+or(r.Closed.By, "carma"), r.Closed.Why)
	},
	mapper.RulePart:   func(mapper.Rejection) string { return "is a MIG instance, of which a program can use one at a time" },
	mapper.RulePinned: func(mapper.Rejection) string { return "is none that it is bound to" },
	mapper.RuleSuspended: func(mapper.Rejection) string {
		return "is not the GPU that it was suspended on, nor one like it to which the driver can move it"
	},
	mapper.RuleReserved: func(r mapper.Rejection) string {
		if r.Reserved == nil {
			return "is reserved for others"
		}
		v := r.Reserved
		what := "is reserved"
		if v.Memory > 0 {
			what = fmt.Sprintf("has %s reserved", v.Memory)
		}
		return join(fmt.Sprintf("%s for %s from %s to %s, which it would run into", what, whose(v.User, v.Account), clock(v.From), clock(v.Until)), v.Why)
	},
	mapper.RuleSick: func(r mapper.Rejection) string {
		if r.Remedy == "" {
			return "starts no containers: " + r.Fault
		}
		return "starts no containers: " + r.Fault + "; to mend it: " + r.Remedy
	},
	mapper.RuleKept:  func(r mapper.Rejection) string { return fmt.Sprintf("is kept free for task %d", r.Task) },
	mapper.RuleAlone: func(r mapper.Rejection) string { return fmt.Sprintf("belongs to task %d alone", r.Task) },
	mapper.RuleIdle: func(r mapper.Rejection) string {
		return fmt.Sprintf("has %s, an idle GPU is needed", plural(r.Tasks, "task"))
	},
	mapper.RuleForeign: func(r mapper.Rejection) string {
		return fmt.Sprintf("has %s in use by processes that are not carma's, it must be free of others", r.Have)
	},
	mapper.RuleMaxTasks: func(r mapper.Rejection) string {
		return fmt.Sprintf("has %s, the most allowed", plural(r.Tasks, "task"))
	},
	mapper.RuleMemory: func(r mapper.Rejection) string {
		if r.Learner != 0 {
			return fmt.Sprintf("task %d has all free memory until its own is known, about %s after it has begun to train", r.Learner, minutes(r.Span))
		}
		return fmt.Sprintf("memory %.1f of %.1f GiB reserved, needs %.1f", r.Have.GiB(), r.Of.GiB(), r.Need.GiB())
	},
	mapper.RuleMinFree: func(r mapper.Rejection) string {
		return fmt.Sprintf("has %.1f GiB free, under the minimum of %.1f", r.Have.GiB(), r.Need.GiB())
	},
	mapper.RuleSMACT: func(r mapper.Rejection) string {
		return fmt.Sprintf("SMACT %.2f, at or over %.2f", r.SMACT, r.Cap)
	},
	mapper.RuleWarmUp: func(r mapper.Rejection) string { return fmt.Sprintf("is warming up task %d", r.Task) },
	mapper.RuleSharing: func(mapper.Rejection) string {
		return "has no room for its sharing score, the scores on a GPU sum to at most 2"
	},
	mapper.RuleUtilization: func(mapper.Rejection) string { return "would be asked for more than 100 % of its time" },
	mapper.RuleSlowdown: func(r mapper.Rejection) string {
		if r.Task == 0 {
			return fmt.Sprintf("would slow it down %.2f times, over %s", r.Slowdown, limit(r))
		}
		return fmt.Sprintf("it would slow task %d down %.2f times, over %s", r.Task, r.Slowdown, limit(r))
	},
	mapper.RuleUnseen: func(r mapper.Rejection) string {
		return fmt.Sprintf("is closed until the activity of task %d has been seen", r.Task)
	},
	mapper.RuleWait: func(r mapper.Rejection) string {
		return fmt.Sprintf("has %s, waiting for one to end costs less than sharing", plural(r.Tasks, "task"))
	},
}

// limit is the most that a slowdown may be predicted to be, and what it is for.
func limit(r mapper.Rejection) string {
	if r.Allowed > 0 {
		return fmt.Sprintf("%.2f, so that it surely stays below %.2f", r.Cap, r.Allowed)
	}
	return fmt.Sprintf("%.2f", r.Cap)
}

// Missing is the fault of a GPU that was there and is not found any more.
const Missing = "not found on this machine"

// clock is an instant in the time of this machine.
func clock(at units.Instant) string { return at.Time().Local().Format(time.DateTime) }
