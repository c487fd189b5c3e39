package words

import (
	"fmt"
	"strconv"
	"time"

	"carma/mapper"
)

// Reason says a reason in words, as a clause that can follow a colon; "" for no
// reason. A code that this version does not know is named.
func Reason(r mapper.Reason) string {
	if r.Code == "" {
		return ""
	}
	cause := ""
	if r.Cause != nil {
		cause = Reason(*r.Cause)
	}
	if say := sentences[r.Code]; say != nil {
		return say(r, cause)
	}
	return join("for the reason "+string(r.Code), r.Text)
}

// sentences has one for each code, of a reason and its cause in words.
var sentences = map[mapper.ReasonCode]func(r mapper.Reason, cause string) string{
	mapper.ReasonText: func(r mapper.Reason, _ string) string { return r.Text },

	mapper.ReasonAsked: func(r mapper.Reason, _ string) string { return or(r.Text, "stopped") },
	mapper.ReasonSlowing: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("it slowed task %d on GPU %d down %.2f times, more than allowed", r.Task, r.GPU, float64(r.Percent)/100)
	},
	mapper.ReasonRecalled: func(r mapper.Reason, _ string) string {
		return join(or(r.Name, "carma")+" sent it back to the queue", r.Text)
	},
	mapper.ReasonSuspended: func(r mapper.Reason, cause string) string {
		switch {
		case r.Cause != nil && r.Cause.Code == mapper.ReasonIdle:
			return "suspended, as " + cause + "; it comes back when somebody resumes it, or types into its terminal"
		case cause != "":
			return "suspended: " + cause
		}
		return join("suspended by "+or(r.Name, "carma"), r.Text)
	},
	mapper.ReasonMadeWay: func(r mapper.Reason, _ string) string {
		if r.Span > 0 {
			return fmt.Sprintf("suspended %s ago to make way for task %d", seconds(r.Span), r.Task)
		}
		return fmt.Sprintf("it makes way for task %d", r.Task)
	},
	mapper.ReasonSwapped: func(r mapper.Reason, _ string) string {
		until := fmt.Sprintf("the shorter task %d until that ends, at most %s later", r.Task, minutes(r.Most))
		if r.Span > 0 {
			return fmt.Sprintf("suspended %s ago to make way for %s", seconds(r.Span), until)
		}
		return "it makes way for " + until
	},
	mapper.ReasonFilled: func(r mapper.Reason, _ string) string {
		if r.Span > 0 {
			return fmt.Sprintf("suspended %s ago: its GPU was held for task %d, which could start", seconds(r.Span), r.Task)
		}
		return fmt.Sprintf("its GPU was held for task %d, which can start now", r.Task)
	},
	mapper.ReasonFills: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("GPU %d is held for task %d: this one is suspended when that can start", r.GPU, r.Task)
	},
	mapper.ReasonWay: func(r mapper.Reason, _ string) string {
		if r.Count > 1 {
			return fmt.Sprintf("%s make way for it: task %d on GPU %d first", plural(r.Count, "task"), r.Task, r.GPU)
		}
		return fmt.Sprintf("task %d makes way for it on GPU %d", r.Task, r.GPU)
	},
	mapper.ReasonNotRunning: func(mapper.Reason, string) string { return "only a task that runs on a GPU can be suspended" },
	mapper.ReasonSeveralGPUs: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("it runs on %s: the driver cannot suspend programs that talk to each other, and this one does not offer to leave by itself", plural(r.Count, "GPU"))
	},
	mapper.ReasonCannotSuspend: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("the driver cannot suspend programs on GPU %d", r.GPU)
	},
	mapper.ReasonMPSClient: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("it shares GPU %d by MPS, whose clients the driver cannot suspend, and its program does not offer to leave by itself; a task with --exclusive can be suspended", r.GPU)
	},
	mapper.ReasonHostFull: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("%s of host memory would hold what it has on the GPU, and %s can be booked", r.Need, r.Have)
	},
	mapper.ReasonNotSuspended: func(r mapper.Reason, _ string) string { return join("it could not be suspended and runs on", r.Text) },
	mapper.ReasonNotResumed: func(r mapper.Reason, _ string) string {
		return join(fmt.Sprintf("it could not come back to a GPU %s", plural(r.Count, "time")), r.Text)
	},
	mapper.ReasonFoundAway: func(mapper.Reason, string) string {
		return "it was found suspended, which the journal did not have"
	},
	mapper.ReasonMoved: func(r mapper.Reason, _ string) string {
		return or(r.Name, "carma") + " moved it to other GPUs"
	},
	mapper.ReasonDrained: func(r mapper.Reason, _ string) string {
		return join(fmt.Sprintf("moved off GPU %d, which is drained by %s", r.GPU, or(r.Name, "carma")), r.Text)
	},
	mapper.ReasonHold: func(r mapper.Reason, _ string) string {
		return join("held by "+or(r.Name, "carma"), r.Text)
	},
	mapper.ReasonPaused: func(r mapper.Reason, _ string) string {
		text := join(or(r.Name, "carma")+" paused launching", r.Text)
		if r.Span > 0 {
			text += "; it goes on in " + seconds(r.Span)
		}
		return text
	},
	mapper.ReasonTimeLimit: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("time limit of %s reached", r.Span)
	},
	mapper.ReasonIdle: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("it did nothing for %s", r.Span.Round(time.Second))
	},
	mapper.ReasonSlotUsed: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("time slot of %s used, others wait", r.Span)
	},
	mapper.ReasonOveruse: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("it used %s of the %s reserved for it on GPU %d, and others need the room", r.Have, r.Of, r.GPU)
	},

	mapper.ReasonProgram:     func(r mapper.Reason, _ string) string { return or(r.Text, fmt.Sprintf("exit code %d", r.Count)) },
	mapper.ReasonHostOOM:     func(r mapper.Reason, _ string) string { return or(r.Text, "the kernel killed it for host memory") },
	mapper.ReasonCannotStart: func(r mapper.Reason, _ string) string { return or(r.Text, "its container cannot start as asked") },
	mapper.ReasonInfrastructure: func(r mapper.Reason, _ string) string {
		return or(r.Text, "the container engine or a driver failed under it")
	},
	mapper.ReasonEvicted:  func(r mapper.Reason, _ string) string { return or(r.Text, "MPS took its memory back") },
	mapper.ReasonMPSFault: func(r mapper.Reason, _ string) string { return or(r.Text, "the MPS server failed under it") },
	mapper.ReasonStopped:  func(r mapper.Reason, _ string) string { return or(r.Text, "it was stopped") },
	mapper.ReasonRetry: func(r mapper.Reason, cause string) string {
		return fmt.Sprintf("retry %d of %d: %s", r.Count, r.Limit, cause)
	},
	mapper.ReasonTooOften: func(r mapper.Reason, cause string) string { return fmt.Sprintf("%s, %d times", cause, r.Count) },

	mapper.ReasonUnstarted: func(r mapper.Reason, _ string) string {
		text := or(r.Text, "its container could not be started")
		if r.Limit > 0 {
			text += fmt.Sprintf("; the engine is not at fault: look at the task and its image; it fails after %d more failed starts", r.Limit)
		}
		return text
	},
	mapper.ReasonNeverStarted: func(r mapper.Reason, cause string) string {
		return fmt.Sprintf("%s; %d starts failed, and the engine is not at fault", cause, r.Count)
	},
	mapper.ReasonOthersStart: func(r mapper.Reason, cause string) string {
		return fmt.Sprintf("%s, and %d times others could start where it could not", cause, r.Count)
	},

	mapper.ReasonOOM: func(r mapper.Reason, cause string) string {
		if r.Cause != nil && r.Cause.Code == mapper.ReasonOveruse {
			return "stopped before the GPU ran out of memory: " + cause
		}
		return "GPU out of memory: " + cause
	},
	mapper.ReasonOOMSuspected: func(r mapper.Reason, cause string) string {
		return fmt.Sprintf("GPU out of memory suspected (%s): it gets more memory once; %s", or(r.Text, "its output names exhausted memory"), cause)
	},
	mapper.ReasonOOMBlameless: func(_ mapper.Reason, cause string) string {
		return "GPU out of memory through no fault of its own: " + cause
	},
	mapper.ReasonOOMAlone: func(_ mapper.Reason, cause string) string { return "GPU out of memory alone on a GPU: " + cause },
	mapper.ReasonOOMTooOften: func(r mapper.Reason, cause string) string {
		return fmt.Sprintf("GPU out of memory in %s; at last %s", plural(r.Count, "attempt"), cause)
	},
	mapper.ReasonWantedMore: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("it wanted %s and had %s reserved", r.Need, r.Have)
	},
	mapper.ReasonRanOut: func(r mapper.Reason, _ string) string { return fmt.Sprintf("it ran out with %s reserved", r.Have) },
	mapper.ReasonForeignUse: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("processes that are not carma's use %s on GPU %d", r.Have, r.GPU)
	},
	mapper.ReasonNeighbour: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("task %d used %s of the %s reserved for it on GPU %d", r.Task, r.Have, r.Of, r.GPU)
	},

	mapper.ReasonHostMemory: func(r mapper.Reason, _ string) string {
		text := fmt.Sprintf("it needs %s of host memory; %s of %s can be booked now", r.Need, r.Have, r.Of)
		if r.Helpers > 0 {
			text += fmt.Sprintf(", as helpers of suites have %s", r.Helpers)
		}
		return text
	},
	mapper.ReasonHostCPUs: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("it needs %s; %s of %s are booked", processors(r.More), thousandths(r.Count), thousandths(r.Limit))
	},
	mapper.ReasonHostInUse: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("it uses %s of host memory now; %s is too little", r.Have, r.Of)
	},
	mapper.ReasonHostLow: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("the machine is low on memory: %s of %s are available", r.Have, r.Of)
	},
	mapper.ReasonHostKept: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("host memory is kept free for task %d, which has waited too long", r.Task)
	},
	mapper.ReasonHostAgain: func(r mapper.Reason, cause string) string {
		return after(cause, fmt.Sprintf("it used %s of host memory and runs again with %s booked", r.Have, r.Need))
	},
	mapper.ReasonHostAll: func(r mapper.Reason, cause string) string {
		return after(cause, fmt.Sprintf("it had %s of host memory, as much as a task may have", r.Have))
	},
	mapper.ReasonHostOveruse: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("the machine ran low on memory, and it used %s of the %s of host memory booked for it", r.Have, r.Of)
	},
	mapper.ReasonTooMuchHost: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("%s of host memory asked for, a task may have at most %s", r.Need, r.Of)
	},
	mapper.ReasonTooManyCPUs: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("%s asked for, tasks may have %s", processors(r.More), thousandths(r.Limit))
	},
	mapper.ReasonTooManyGPUs: func(r mapper.Reason, cause string) string {
		return after(cause, fmt.Sprintf("%s asked for, one machine has %d", plural(r.Count, "GPU"), r.Limit))
	},
	mapper.ReasonOnlyParts: func(r mapper.Reason, cause string) string {
		return after(cause, fmt.Sprintf("%s asked for, one machine has %s and MIG instances, of which a program can use one at a time", plural(r.Count, "GPU"), plural(r.Limit, "whole GPU")))
	},
	mapper.ReasonTooMuchMemory: func(r mapper.Reason, cause string) string {
		return after(cause, fmt.Sprintf("%s of memory asked for on %s, the most there is: %s", r.Need, plural(r.Count, "GPU"), r.Of))
	},
	mapper.ReasonNeverGPUs: func(r mapper.Reason, cause string) string {
		return after(cause, fmt.Sprintf("%s asked for, a user may have %d", plural(r.Count, "GPU"), r.Limit))
	},
	mapper.ReasonNeverAlone: func(r mapper.Reason, cause string) string {
		return after(cause, fmt.Sprintf("it needs %s for itself, up to %s of GPU memory; a user may have %s", plural(r.Count, "GPU"), r.Need, r.Of))
	},
	mapper.ReasonNeverMemory: func(r mapper.Reason, cause string) string {
		return after(cause, fmt.Sprintf("%s of GPU memory asked for in all, a user may have %s", r.Need, r.Of))
	},
	mapper.ReasonSlotTooLong: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("a slot of %s asked for, the longest is %s", r.Span, r.Most)
	},

	mapper.ReasonAfterUnknown: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("unknown condition %q on task %d", r.Condition, r.Task)
	},
	mapper.ReasonAfterLater: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("it was to run after task %d, which does not come before it", r.Task)
	},
	mapper.ReasonAfterForgotten: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("it was to run after task %d, of which nothing is known any more", r.Task)
	},
	mapper.ReasonAfterFailed:    func(r mapper.Reason, _ string) string { return unmet(r, "failed") },
	mapper.ReasonAfterCancelled: func(r mapper.Reason, _ string) string { return unmet(r, "was cancelled") },

	mapper.ReasonAfter: func(r mapper.Reason, _ string) string {
		text := fmt.Sprintf("it waits for task %d to %s", r.Task, verb(r.Condition))
		if r.More > 0 {
			text += " and for " + plural(r.More, "more task")
		}
		return text
	},
	mapper.ReasonDelay: func(r mapper.Reason, _ string) string { return "it is to be queued in " + seconds(r.Span) },
	mapper.ReasonGroup: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("%s of group %s run or are queued; at most %d at a time", plural(r.Count, "task"), r.Name, r.Limit)
	},

	mapper.ReasonEngineDown: func(r mapper.Reason, _ string) string { return or(r.Text, "the container engine does not answer") },
	mapper.ReasonEngineSick: func(r mapper.Reason, _ string) string {
		text := "the container engine starts nothing: " + r.Text
		if r.Remedy != "" {
			text += "; to mend it: " + r.Remedy
		}
		if r.Span > 0 {
			text += "; tried again in " + seconds(r.Span)
		}
		return text
	},
	mapper.ReasonNoGPU: func(mapper.Reason, string) string { return "no GPU was found on this machine" },
	mapper.ReasonBackOff: func(r mapper.Reason, cause string) string {
		return fmt.Sprintf("tried again in %s after: %s", seconds(r.Span), cause)
	},
	mapper.ReasonQuotaTasks: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("%s has %s running, the most allowed per user", r.Name, plural(r.Count, "task"))
	},
	mapper.ReasonQuotaGPUs: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("%s has %s and would have %d, of %d allowed per user", r.Name, plural(r.Count, "GPU"), r.Count+r.More, r.Limit)
	},
	mapper.ReasonQuotaMemory: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("%s has %s of GPU memory reserved and needs %s more, of %s allowed per user", r.Name, r.Have, r.Need, r.Of)
	},
	mapper.ReasonNamespaceFull: func(r mapper.Reason, _ string) string {
		text := fmt.Sprintf("namespace %s takes no more now: %s", r.Name, or(r.Text, "it is full"))
		if r.Remedy != "" {
			text += "; " + r.Remedy
		}
		if r.Span > 0 {
			text += "; tried again in " + seconds(r.Span)
		}
		return text
	},
	mapper.ReasonRecoveryFirst: func(mapper.Reason, string) string {
		return "tasks in the recovery queue go first (recovery: original)"
	},
	mapper.ReasonInterval: func(r mapper.Reason, _ string) string { return fmt.Sprintf("one launch every %s", r.Span) },
	mapper.ReasonHanding: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("it fits; %d of at most %d launches are on their way to the engine (launches-at-once)", r.Count, r.Limit)
	},
	mapper.ReasonFairShare: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("by fair share %s first", laterTasks(r.Count))
	},
	mapper.ReasonLookAhead: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("%s ahead of it in the queue; no more than %d that do not fit are passed over", plural(r.Count, "task"), r.Limit)
	},
	mapper.ReasonLookedAtLater: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("it fits by now; the queue is looked at again within %s", seconds(r.Span))
	},
	mapper.ReasonAboutToStart: func(mapper.Reason, string) string { return "it fits and is about to start" },
	mapper.ReasonScattered: func(r mapper.Reason, _ string) string {
		return fmt.Sprintf("%d GPUs fit, but no %d of one machine together", r.Count, r.Limit)
	},
	mapper.ReasonTurnedDown: func(r mapper.Reason, _ string) string { return fmt.Sprintf("%d of %d GPUs fit", r.Count, r.Limit) },
}

// unmet says why a task that was to follow another will not run.
func unmet(r mapper.Reason, what string) string {
	had := "succeeded"
	if r.Condition == mapper.AfterStarted {
		had = "started"
	}
	return fmt.Sprintf("task %d %s, and it was to run only after that had %s", r.Task, what, had)
}

// verb is what a task is waited for to do.
func verb(c mapper.Condition) string {
	switch c {
	case mapper.AfterAny:
		return "end"
	case mapper.AfterStarted:
		return "start"
	}
	return "succeed"
}

func laterTasks(n int) string {
	if n == 1 {
		return "1 later task of others goes"
	}
	return fmt.Sprintf("%d later tasks of others go", n)
}

// after puts what has led to a reason before its sentence.
func after(cause, text string) string {
	if cause == "" {
		return text
	}
	return cause + "; " + text
}

// minutes is a time that is about so long.
func minutes(d time.Duration) string {
	if d < time.Minute {
		return seconds(d)
	}
	return fmt.Sprintf("%.0f min", d.Minutes())
}

// seconds is a time without fractions of a second.
func seconds(d time.Duration) string { return d.Round(time.Second).String() }

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func join(a, b string) string {
	if b == "" {
		return a
	}
	return a + ": " + b
}

// processors says a number of processors that is given in thousandths.
func processors(n int) string {
	if n == 1000 {
		return "1 processor"
	}
	return thousandths(n) + " processors"
}

func thousandths(n int) string { return strconv.FormatFloat(float64(n)/1000, 'g', 6, 64) }

// Codes returns all codes of reasons, in no order.
func Codes() (all []mapper.ReasonCode) {
	for code := range sentences {
		all = append(all, code)
	}
	return all
}
