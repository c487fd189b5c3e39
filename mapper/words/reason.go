package words

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"carma/mapper/model"
)

// Reason returns a reason in words, as a clause that can follow a colon, or "" for no
// reason. For a code unknown to this version, it names the code.
func Reason(r model.Reason) string {
	if r.Code == "" {
		return ""
	}
	sentence, known := sentences[r.Code]
	if r.Cause != nil {
		if special := becauseOf[[2]model.ReasonCode{r.Code, r.Cause.Code}]; special != "" {
			sentence = special
		}
	}
	if !known {
		return join("for the reason "+string(r.Code), r.Text)
	}
	text, _ := fill(sentence, func(field string) string {
		if field != "cause" {
			return values[field](&r)
		}
		if r.Cause == nil {
			return ""
		}
		return Reason(*r.Cause)
	})
	return text
}

// sentences contains one sentence for each code. See [fill] for its syntax; the fields
// are "cause" and the keys of values.
var sentences = map[model.ReasonCode]string{
	model.ReasonText: "{text}",

	model.ReasonAsked:         "{text|stopped}",
	model.ReasonSlowing:       "it slowed task {task} on GPU {gpu} down {percent} times, more than allowed",
	model.ReasonRecalled:      "{by} sent it back to the queue[: {text}]",
	model.ReasonSuspended:     "suspended[: {cause}~ by {who}]",
	model.ReasonMadeWay:       "[suspended {time} ago to make way for~it makes way for] task {task}",
	model.ReasonSwapped:       "[suspended {time} ago to make way for~it makes way for] the shorter task {task} until that ends, at most {most} later",
	model.ReasonFilled:        "[suspended {time} ago: its GPU was held for task {task}, which could start~its GPU was held for task {task}, which can start now]",
	model.ReasonFills:         "GPU {gpu} is held for task {task}: this one is suspended when that can start",
	model.ReasonWay:           "[{several} make way for it: task {task} on GPU {gpu} first~task {task} makes way for it on GPU {gpu}]",
	model.ReasonNotRunning:    "only a task that runs on a GPU can be suspended",
	model.ReasonSeveralGPUs:   "it runs on {gpus}: the driver cannot suspend programs that talk to each other, and this one does not offer to leave by itself",
	model.ReasonCannotSuspend: "the driver cannot suspend programs on GPU {gpu}",
	model.ReasonMPSClient:     "it shares GPU {gpu} by MPS, whose clients the driver cannot suspend, and its program does not offer to leave by itself; a task with --exclusive can be suspended",
	model.ReasonHostFull:      "{need} of host memory would hold what it has on the GPU, and {have} can be booked",
	model.ReasonNotSuspended:  "it could not be suspended and runs on[: {text}]",
	model.ReasonNotResumed:    "it could not come back to a GPU {times}[: {text}]",
	model.ReasonFoundAway:     "it was found suspended, which the journal did not have",
	model.ReasonMoved:         "{by} moved it to other GPUs",
	model.ReasonDrained:       "moved off GPU {gpu}, which is drained by {who}",
	model.ReasonHold:          "held by {who}",
	model.ReasonPaused:        "{by} paused launching[: {text}][; it goes on in {time}]",
	model.ReasonTimeLimit:     "time limit of {span} reached",
	model.ReasonIdle:          "it did nothing for {rounded}",
	model.ReasonSlotUsed:      "time slot of {span} used, others wait",
	model.ReasonOveruse:       "it used {have} of the {of} reserved for it on GPU {gpu}, and others need the room",

	model.ReasonProgram:        "{text|exit code {count}}",
	model.ReasonHostOOM:        "{text|the kernel killed it for host memory}",
	model.ReasonCannotStart:    "{text|its container cannot start as asked}",
	model.ReasonInfrastructure: "{text|the container engine or a driver failed under it}",
	model.ReasonEvicted:        "{text|MPS took its memory back}",
	model.ReasonMPSFault:       "{text|the MPS server failed under it}",
	model.ReasonStopped:        "{text|it was stopped}",
	model.ReasonRetry:          "retry {count} of {limit}: {cause}",
	model.ReasonTooOften:       "{cause}, {count} times",

	model.ReasonUnstarted:    "{text|its container could not be started}[; the engine is not at fault: look at the task and its image; it fails after {left} more failed starts]",
	model.ReasonNeverStarted: "{cause}; {count} starts failed, and the engine is not at fault",
	model.ReasonOthersStart:  "{cause}, and {count} times others could start where it could not",

	model.ReasonOOM:          "GPU out of memory: {cause}",
	model.ReasonOOMSuspected: "GPU out of memory suspected ({text|its output names exhausted memory}): it gets more memory once; {cause}",
	model.ReasonOOMBlameless: "GPU out of memory through no fault of its own: {cause}",
	model.ReasonOOMAlone:     "GPU out of memory alone on a GPU: {cause}",
	model.ReasonOOMTooOften:  "GPU out of memory in {attempts}; at last {cause}",
	model.ReasonWantedMore:   "it wanted {need} and had {have} reserved",
	model.ReasonRanOut:       "it ran out with {have} reserved",
	model.ReasonForeignUse:   "processes that are not carma's use {have} on GPU {gpu}",
	model.ReasonNeighbour:    "task {task} used {have} of the {of} reserved for it on GPU {gpu}",

	model.ReasonHostMemory:    "it needs {need} of host memory; {have} of {of} can be booked now[, as helpers of suites have {helpers}]",
	model.ReasonHostCPUs:      "it needs {processors}; {booked} of {all} are booked",
	model.ReasonHostInUse:     "it uses {have} of host memory now; {of} is too little",
	model.ReasonHostLow:       "the machine is low on memory: {have} of {of} are available",
	model.ReasonHostKept:      "host memory is kept free for task {task}, which has waited too long",
	model.ReasonHostAgain:     "[{cause}; ]it used {have} of host memory and runs again with {need} booked",
	model.ReasonHostAll:       "[{cause}; ]it had {have} of host memory, as much as a task may have",
	model.ReasonHostOveruse:   "the machine ran low on memory, and it used {have} of the {of} of host memory booked for it",
	model.ReasonTooMuchHost:   "{need} of host memory asked for, a task may have at most {of}",
	model.ReasonTooManyCPUs:   "{processors} asked for, tasks may have {all}",
	model.ReasonTooManyGPUs:   "[{cause}; ]{gpus} asked for, one machine has {limit}",
	model.ReasonOnlyParts:     "[{cause}; ]{gpus} asked for, one machine has {whole} and MIG instances, of which a program can use one at a time",
	model.ReasonTooMuchMemory: "[{cause}; ]{need} of memory asked for on {gpus}, the most there is: {of}",
	model.ReasonNeverGPUs:     "[{cause}; ]{gpus} asked for, a user may have {limit}",
	model.ReasonNeverAlone:    "[{cause}; ]it needs {gpus} for itself, up to {need} of GPU memory; a user may have {of}",
	model.ReasonNeverMemory:   "[{cause}; ]{need} of GPU memory asked for in all, a user may have {of}",
	model.ReasonSlotTooLong:   "a slot of {span} asked for, the longest is {longest}",

	model.ReasonAfterUnknown:   "unknown condition {condition} on task {task}",
	model.ReasonAfterLater:     "it was to run after task {task}, which does not come before it",
	model.ReasonAfterForgotten: "it was to run after task {task}, of which nothing is known any more",
	model.ReasonAfterFailed:    "task {task} failed, and it was to run only after that had {had}",
	model.ReasonAfterCancelled: "task {task} was cancelled, and it was to run only after that had {had}",
	model.ReasonAfter:          "it waits for task {task} to {verb}[ and for {more}]",
	model.ReasonDelay:          "it is to be queued in {rounded}",
	model.ReasonGroup:          "{tasks} of group {name} run or are queued; at most {limit} at a time",

	model.ReasonEngineDown:    "{text|the container engine does not answer}",
	model.ReasonEngineSick:    "the container engine starts nothing: {text}[; to mend it: {remedy}][; tried again in {time}]",
	model.ReasonNoGPU:         "no GPU was found on this machine",
	model.ReasonBackOff:       "tried again in {rounded} after: {cause}",
	model.ReasonQuotaTasks:    "{name} has {tasks} running, the most allowed per user",
	model.ReasonQuotaGPUs:     "{name} has {gpus} and would have {sum}, of {limit} allowed per user",
	model.ReasonQuotaMemory:   "{name} has {have} of GPU memory reserved and needs {need} more, of {of} allowed per user",
	model.ReasonNamespaceFull: "namespace {name} takes no more now: {text|it is full}[; {remedy}][; tried again in {time}]",
	model.ReasonRecoveryFirst: "tasks in the recovery queue go first (recovery: original)",
	model.ReasonInterval:      "one launch every {span}",
	model.ReasonHanding:       "it fits; {count} of at most {limit} launches are on their way to the engine (launches-at-once)",
	model.ReasonFairShare:     "by fair share {later} first",
	model.ReasonLookAhead:     "{tasks} ahead of it in the queue; no more than {limit} that do not fit are passed over",
	model.ReasonLookedAtLater: "it fits by now; the queue is looked at again within {rounded}",
	model.ReasonAboutToStart:  "it fits and is about to start",
	model.ReasonScattered:     "{count} GPUs fit, but no {limit} of one machine together",
	model.ReasonTurnedDown:    "{count} of {limit} GPUs fit",
}

// becauseOf contains the sentences for a reason with a certain cause.
var becauseOf = map[[2]model.ReasonCode]string{
	{model.ReasonSuspended, model.ReasonIdle}: "suspended, as {cause}; it comes back when somebody resumes it, or types into its terminal",
	{model.ReasonOOM, model.ReasonOveruse}:    "stopped before the GPU ran out of memory: {cause}",
}

// values are the fields of reasons as used in sentences.
var values = map[string]func(r *model.Reason) string{
	"text":       func(r *model.Reason) string { return r.Text },
	"remedy":     func(r *model.Reason) string { return r.Remedy },
	"name":       func(r *model.Reason) string { return r.Name },
	"by":         func(r *model.Reason) string { return cmp.Or(r.Name, "carma") },
	"who":        func(r *model.Reason) string { return join(cmp.Or(r.Name, "carma"), r.Text) },
	"task":       func(r *model.Reason) string { return r.Task.String() },
	"gpu":        func(r *model.Reason) string { return strconv.Itoa(r.GPU) },
	"have":       func(r *model.Reason) string { return r.Have.String() },
	"need":       func(r *model.Reason) string { return r.Need.String() },
	"of":         func(r *model.Reason) string { return r.Of.String() },
	"helpers":    func(r *model.Reason) string { return some(r.Helpers, r.Helpers.String()) },
	"percent":    func(r *model.Reason) string { return fmt.Sprintf("%.2f", float64(r.Percent)/100) },
	"count":      func(r *model.Reason) string { return strconv.Itoa(r.Count) },
	"limit":      func(r *model.Reason) string { return strconv.Itoa(r.Limit) },
	"left":       func(r *model.Reason) string { return some(r.Limit, strconv.Itoa(r.Limit)) },
	"sum":        func(r *model.Reason) string { return strconv.Itoa(r.Count + r.More) },
	"tasks":      func(r *model.Reason) string { return plural(r.Count, "task") },
	"several":    func(r *model.Reason) string { return some(r.Count-1, plural(r.Count, "task")) },
	"more":       func(r *model.Reason) string { return some(r.More, plural(r.More, "more task")) },
	"gpus":       func(r *model.Reason) string { return plural(r.Count, "GPU") },
	"whole":      func(r *model.Reason) string { return plural(r.Limit, "whole GPU") },
	"times":      func(r *model.Reason) string { return plural(r.Count, "time") },
	"attempts":   func(r *model.Reason) string { return plural(r.Count, "attempt") },
	"later":      func(r *model.Reason) string { return laterTasks(r.Count) },
	"processors": func(r *model.Reason) string { return processors(r.More) },
	"booked":     func(r *model.Reason) string { return thousandths(r.Count) },
	"all":        func(r *model.Reason) string { return thousandths(r.Limit) },
	"span":       func(r *model.Reason) string { return r.Span.String() },
	"rounded":    func(r *model.Reason) string { return seconds(r.Span) },
	"time":       func(r *model.Reason) string { return some(r.Span, seconds(r.Span)) },
	"most":       func(r *model.Reason) string { return minutes(r.Most) },
	"longest":    func(r *model.Reason) string { return r.Most.String() },
	"condition":  func(r *model.Reason) string { return strconv.Quote(string(r.Condition)) },
	"verb":       func(r *model.Reason) string { return cmp.Or(verbs[r.Condition], "succeed") },
	"had":        func(r *model.Reason) string { return cmp.Or(had[r.Condition], "succeeded") },
}

// verbs describe the state that a dependency waits for, had the state that it needed,
// unless that is success.
var (
	verbs = map[model.Condition]string{model.AfterAny: "end", model.AfterStarted: "start"}
	had   = map[model.Condition]string{model.AfterStarted: "started"}
)

// some returns a text, or nothing if a number is not above zero.
func some[N ~int | ~int64 | ~float64](n N, text string) string {
	if n <= 0 {
		return ""
	}
	return text
}

func laterTasks(n int) string {
	if n == 1 {
		return "1 later task of others goes"
	}
	return fmt.Sprintf("%d later tasks of others go", n)
}

// minutes formats a time to about a minute.
func minutes(d time.Duration) string {
	if d < time.Minute {
		return seconds(d)
	}
	return fmt.Sprintf("%.0f min", d.Minutes())
}

// seconds formats a time without fractions of a second.
func seconds(d time.Duration) string { return d.Round(time.Second).String() }

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func join(a, b string) string {
	if b == "" {
		return a
	}
	return a + ": " + b
}

// processors formats a number of processors given in thousandths.
func processors(n int) string {
	if n == 1000 {
		return "1 processor"
	}
	return thousandths(n) + " processors"
}

func thousandths(n int) string { return strconv.FormatFloat(float64(n)/1000, 'g', 6, 64) }

// Codes returns all codes of reasons, in no order.
func Codes() []model.ReasonCode { return slices.Collect(maps.Keys(sentences)) }
