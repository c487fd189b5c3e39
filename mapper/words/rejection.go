package words

import (
	"cmp"
	"fmt"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// Rejection returns the reason why a GPU was rejected: "GPU 0 memory 31.2 of 40.0 GiB
// reserved, needs 12.3".
func Rejection(r model.Rejection) string {
	gpu := fmt.Sprintf("GPU %d", r.Index)
	switch {
	case r.Rule == model.RuleSlowdown && r.Task != 0:
		return "on " + gpu + " " + OnGPU(r)
	case r.Rule == model.RuleMemory && r.Learner != 0:
		return gpu + ": " + OnGPU(r)
	}
	return gpu + " " + OnGPU(r)
}

// OnGPU returns the same as Rejection, but for a place where the GPU is already named, as
// in a table: "memory 31.2 of 40.0 GiB reserved, needs 12.3".
func OnGPU(r model.Rejection) string {
	clause := clauses[r.Rule]
	if clause == "" {
		return "rejected: " + string(r.Rule)
	}
	text, _ := fill(clause, func(field string) string { return parts[field](&r) })
	return text
}

// clauses contains one clause for each rule about a GPU, with the fields of parts; see
// [fill].
var clauses = map[model.Rule]string{
	model.RuleFault:       "is out of service: {lost}",
	model.RuleClosed:      "is drained[ by {by}]",
	model.RulePart:        "is a MIG instance, of which a program can use one at a time",
	model.RulePinned:      "is none that it is bound to",
	model.RuleSuspended:   "is not the GPU that it was suspended on, nor one like it to which the driver can move it",
	model.RuleReserved:    "{reserved|is reserved for others}",
	model.RuleSick:        "starts no containers: {fault}[; to mend it: {remedy}]",
	model.RuleKept:        "is kept free for task {task}",
	model.RuleAlone:       "belongs to task {task} alone",
	model.RuleIdle:        "has {tasks}, an idle GPU is needed",
	model.RuleForeign:     "has {have} in use by processes that are not carma's, it must be free of others",
	model.RuleMaxTasks:    "has {tasks}, the most allowed",
	model.RuleMemory:      "[task {learner} has all free memory until its own is known, about {time} after it has begun to train~memory {haveGiB} of {ofGiB} GiB reserved, needs {needGiB}]",
	model.RuleMinFree:     "has {haveGiB} GiB free, under the minimum of {needGiB}",
	model.RuleSMACT:       "SMACT {smact}, at or over {cap}",
	model.RuleWarmUp:      "is warming up task {task}",
	model.RuleSharing:     "has no room for its sharing score, the scores on a GPU sum to at most 2",
	model.RuleUtilization: "would be asked for more than 100 % of its time",
	model.RuleSlowdown:    "[it would slow task {other}~would slow it] down {slowdown} times, over {cap}[, so that it surely stays below {allowed}]",
	model.RuleUnseen:      "is closed until the activity of task {task} has been seen",
	model.RuleWait:        "has {tasks}, waiting for one to end costs less than sharing",
}

// parts are the fields of rejections as used in clauses.
var parts = map[string]func(r *model.Rejection) string{
	"fault": func(r *model.Rejection) string { return r.Fault },
	"lost": func(r *model.Rejection) string {
		if r.Missing {
			return Missing
		}
		return r.Fault
	},
	"remedy":   func(r *model.Rejection) string { return r.Remedy },
	"by":       func(r *model.Rejection) string { return closedBy(r.Closed) },
	"reserved": func(r *model.Rejection) string { return reserved(r.Reserved) },
	"task":     func(r *model.Rejection) string { return r.Task.String() },
	"other":    func(r *model.Rejection) string { return some(r.Task, r.Task.String()) },
	"learner":  func(r *model.Rejection) string { return some(r.Learner, r.Learner.String()) },
	"tasks":    func(r *model.Rejection) string { return plural(r.Tasks, "task") },
	"time":     func(r *model.Rejection) string { return minutes(r.Span) },
	"have":     func(r *model.Rejection) string { return r.Have.String() },
	"haveGiB":  func(r *model.Rejection) string { return fmt.Sprintf("%.1f", r.Have.GiB()) },
	"needGiB":  func(r *model.Rejection) string { return fmt.Sprintf("%.1f", r.Need.GiB()) },
	"ofGiB":    func(r *model.Rejection) string { return fmt.Sprintf("%.1f", r.Of.GiB()) },
	"smact":    func(r *model.Rejection) string { return fmt.Sprintf("%.2f", r.SMACT) },
	"slowdown": func(r *model.Rejection) string { return fmt.Sprintf("%.2f", r.Slowdown) },
	"cap":      func(r *model.Rejection) string { return fmt.Sprintf("%.2f", r.Cap) },
	"allowed":  func(r *model.Rejection) string { return some(r.Allowed, fmt.Sprintf("%.2f", r.Allowed)) },
}

// closedBy returns who cordoned a GPU, and the reason, or "" if unknown.
func closedBy(c *model.Cordon) string {
	if c == nil {
		return ""
	}
	return join(cmp.Or(c.By, "carma"), c.Why)
}

// reserved describes a reservation, or returns "" if there is none.
func reserved(v *model.Reservation) string {
	if v == nil {
		return ""
	}
	what := "is reserved"
	if v.Memory > 0 {
		what = fmt.Sprintf("has %s reserved", v.Memory)
	}
	return join(fmt.Sprintf("%s for %s from %s to %s, which it would run into", what, whose(v.User, v.Account), clock(v.From), clock(v.Until)), v.Why)
}

// Missing is the fault of a GPU that is no longer found.
const Missing = "not found on this machine"

// clock formats an instant in the local time.
func clock(at units.Instant) string { return at.Time().Local().Format(time.DateTime) }
