package words

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/explain"
	"carma/mapper/model"
	"carma/mapper/queue"
)

const gib = units.GiB

func because(r, cause model.Reason) model.Reason {
	r.Cause = &cause
	return r
}

// TestReasons checks the texts of reasons.
func TestReasons(t *testing.T) {
	wanted := model.Reason{Code: model.ReasonWantedMore, Need: 18 * gib, Have: 15 * gib}
	said := model.Reason{Code: model.ReasonInfrastructure, Text: "the driver was lost"}
	for _, row := range []struct {
		r    model.Reason
		want string
	}{
		{model.Reason{Code: model.ReasonText, Text: "as an older version said"}, "as an older version said"},
		{model.Reason{Code: model.ReasonAsked}, "stopped"},
		{model.Reason{Code: model.ReasonAsked, Text: "by hand"}, "by hand"},
		{model.Reason{Code: model.ReasonIdle, Span: 2*time.Hour + time.Millisecond}, "it did nothing for 2h0m0s"},
		{model.Reason{Code: model.ReasonTimeLimit, Span: time.Hour}, "time limit of 1h0m0s reached"},
		{model.Reason{Code: model.ReasonMadeWay, Task: 7}, "it makes way for task 7"},
		{model.Reason{Code: model.ReasonSlotUsed, Span: time.Hour}, "time slot of 1h0m0s used, others wait"},
		{model.Reason{Code: model.ReasonOveruse, Have: 6 * gib, Of: 4 * gib}, "it used 6.0 GiB of the 4.0 GiB reserved for it on GPU 0, and others need the room"},
		{model.Reason{Code: model.ReasonSlowing, Task: 8, GPU: 1, Percent: 212}, "it slowed task 8 on GPU 1 down 2.12 times, more than allowed"},
		{model.Reason{Code: model.ReasonProgram, Count: 3}, "exit code 3"},
		{model.Reason{Code: model.ReasonProgram, Count: 3, Text: "Traceback"}, "Traceback"},
		{because(model.Reason{Code: model.ReasonRetry, Count: 1, Limit: 2}, model.Reason{Code: model.ReasonProgram, Text: "exit code 3"}), "retry 1 of 2: exit code 3"},
		{because(model.Reason{Code: model.ReasonTooOften, Count: 9}, said), "the driver was lost, 9 times"},
		{model.Reason{Code: model.ReasonUnstarted, Text: "its container could not be started: no"}, "its container could not be started: no"},
		{model.Reason{Code: model.ReasonUnstarted, Text: "its container could not be started: no", Limit: 3}, "its container could not be started: no; the engine is not at fault: look at the task and its image; it fails after 3 more failed starts"},
		{because(model.Reason{Code: model.ReasonNeverStarted, Count: 10}, said), "the driver was lost; 10 starts failed, and the engine is not at fault"},
		{because(model.Reason{Code: model.ReasonOthersStart, Count: 9}, said), "the driver was lost, and 9 times others could start where it could not"},
		{because(model.Reason{Code: model.ReasonOOM}, wanted), "GPU out of memory: it wanted 18.0 GiB and had 15.0 GiB reserved"},
		{because(model.Reason{Code: model.ReasonOOM}, model.Reason{Code: model.ReasonOveruse, Have: 6 * gib, Of: 4 * gib}),
			"stopped before the GPU ran out of memory: it used 6.0 GiB of the 4.0 GiB reserved for it on GPU 0, and others need the room"},
		{because(model.Reason{Code: model.ReasonOOMBlameless}, model.Reason{Code: model.ReasonNeighbour, Task: 2, Have: 22 * gib, Of: 15 * gib}),
			"GPU out of memory through no fault of its own: task 2 used 22.0 GiB of the 15.0 GiB reserved for it on GPU 0"},
		{because(model.Reason{Code: model.ReasonOOMBlameless}, model.Reason{Code: model.ReasonForeignUse, Have: 9 * gib}),
			"GPU out of memory through no fault of its own: processes that are not carma's use 9.0 GiB on GPU 0"},
		{because(model.Reason{Code: model.ReasonOOMAlone}, model.Reason{Code: model.ReasonRanOut, Have: 40 * gib}), "GPU out of memory alone on a GPU: it ran out with 40.0 GiB reserved"},
		{because(model.Reason{Code: model.ReasonOOMTooOften, Count: 4}, wanted), "GPU out of memory in 4 attempts; at last it wanted 18.0 GiB and had 15.0 GiB reserved"},
		{because(model.Reason{Code: model.ReasonNeverMemory, Need: 24 * gib, Of: 20 * gib}, because(model.Reason{Code: model.ReasonOOM}, wanted)),
			"GPU out of memory: it wanted 18.0 GiB and had 15.0 GiB reserved; 24.0 GiB of GPU memory asked for in all, a user may have 20.0 GiB"},

		{model.Reason{Code: model.ReasonHostMemory, Need: 5 * gib, Have: 4 * gib, Of: 64 * gib}, "it needs 5.0 GiB of host memory; 4.0 GiB of 64.0 GiB can be booked now"},
		{model.Reason{Code: model.ReasonHostMemory, Need: 5 * gib, Have: 4 * gib, Of: 64 * gib, Helpers: 8 * gib}, "it needs 5.0 GiB of host memory; 4.0 GiB of 64.0 GiB can be booked now, as helpers of suites have 8.0 GiB"},
		{model.Reason{Code: model.ReasonHostCPUs, More: 500, Count: 7500, Limit: 8000}, "it needs 0.5 processors; 7.5 of 8 are booked"},
		{model.Reason{Code: model.ReasonHostInUse, Have: 5 * gib, Of: 4 * gib}, "it uses 5.0 GiB of host memory now; 4.0 GiB is too little"},
		{model.Reason{Code: model.ReasonHostLow, Have: gib, Of: 64 * gib}, "the machine is low on memory: 1.0 GiB of 64.0 GiB are available"},
		{model.Reason{Code: model.ReasonHostKept, Task: 7}, "host memory is kept free for task 7, which has waited too long"},
		{because(model.Reason{Code: model.ReasonHostAgain, Have: 4 * gib, Need: 6 * gib}, model.Reason{Code: model.ReasonHostOOM}),
			"the kernel killed it for host memory; it used 4.0 GiB of host memory and runs again with 6.0 GiB booked"},
		{model.Reason{Code: model.ReasonHostAll, Have: 4 * gib}, "it had 4.0 GiB of host memory, as much as a task may have"},
		{model.Reason{Code: model.ReasonHostOveruse, Have: 6 * gib, Of: 4 * gib}, "the machine ran low on memory, and it used 6.0 GiB of the 4.0 GiB of host memory booked for it"},
		{model.Reason{Code: model.ReasonTooMuchHost, Need: 6 * gib, Of: 4 * gib}, "6.0 GiB of host memory asked for, a task may have at most 4.0 GiB"},
		{model.Reason{Code: model.ReasonTooManyCPUs, More: 1000, Limit: 500}, "1 processor asked for, tasks may have 0.5"},

		{model.Reason{Code: model.ReasonTooManyGPUs, Count: 3, Limit: 2}, "3 GPUs asked for, one machine has 2"},
		{model.Reason{Code: model.ReasonTooMuchMemory, Need: 80 * gib, Count: 1, Of: 79 * gib}, "80.0 GiB of memory asked for on 1 GPU, the most there is: 79.0 GiB"},
		{model.Reason{Code: model.ReasonNeverGPUs, Count: 4, Limit: 2}, "4 GPUs asked for, a user may have 2"},
		{model.Reason{Code: model.ReasonNeverAlone, Count: 2, Need: 80 * gib, Of: 50 * gib}, "it needs 2 GPUs for itself, up to 80.0 GiB of GPU memory; a user may have 50.0 GiB"},
		{model.Reason{Code: model.ReasonSlotTooLong, Span: 2 * time.Hour, Most: time.Hour}, "a slot of 2h0m0s asked for, the longest is 1h0m0s"},

		{model.Reason{Code: model.ReasonAfterUnknown, Task: 1, Condition: "soon"}, `unknown condition "soon" on task 1`},
		{model.Reason{Code: model.ReasonAfterLater, Task: 9}, "it was to run after task 9, which does not come before it"},
		{model.Reason{Code: model.ReasonAfterForgotten, Task: 1}, "it was to run after task 1, of which nothing is known any more"},
		{model.Reason{Code: model.ReasonAfterFailed, Task: 1, Condition: model.AfterOK}, "task 1 failed, and it was to run only after that had succeeded"},
		{model.Reason{Code: model.ReasonAfterFailed, Task: 1, Condition: model.AfterStarted}, "task 1 failed, and it was to run only after that had started"},
		{model.Reason{Code: model.ReasonAfterCancelled, Task: 1, Condition: model.AfterOK}, "task 1 was cancelled, and it was to run only after that had succeeded"},

		{model.Reason{Code: model.ReasonAfter, Task: 2, Condition: model.AfterOK, More: 1}, "it waits for task 2 to succeed and for 1 more task"},
		{model.Reason{Code: model.ReasonAfter, Task: 2, Condition: model.AfterAny, More: 2}, "it waits for task 2 to end and for 2 more tasks"},
		{model.Reason{Code: model.ReasonAfter, Task: 2, Condition: model.AfterStarted}, "it waits for task 2 to start"},
		{model.Reason{Code: model.ReasonDelay, Span: time.Hour + 300*time.Millisecond}, "it is to be queued in 1h0m0s"},
		{model.Reason{Code: model.ReasonHold, Name: "ada"}, "held by ada"},
		{model.Reason{Code: model.ReasonHold, Name: "ada", Text: "wait for the data"}, "held by ada: wait for the data"},
		{model.Reason{Code: model.ReasonRecalled, Name: "ada", Text: "room for the demo"}, "ada sent it back to the queue: room for the demo"},
		{model.Reason{Code: model.ReasonPaused, Name: "root", Text: "backup", Span: time.Minute}, "root paused launching: backup; it goes on in 1m0s"},
		{model.Reason{Code: model.ReasonPaused}, "carma paused launching"},
		{model.Reason{Code: model.ReasonGroup, Name: "array", Count: 3, Limit: 3}, "3 tasks of group array run or are queued; at most 3 at a time"},

		{model.Reason{Code: model.ReasonEngineDown}, "the container engine does not answer"},
		{model.Reason{Code: model.ReasonEngineDown, Text: "docker does not answer"}, "docker does not answer"},
		{model.Reason{Code: model.ReasonEngineSick, Text: "the bridge docker0 is gone", Remedy: "systemctl restart docker", Span: 5 * time.Second},
			"the container engine starts nothing: the bridge docker0 is gone; to mend it: systemctl restart docker; tried again in 5s"},
		{because(model.Reason{Code: model.ReasonBackOff, Span: 10 * time.Second}, said), "tried again in 10s after: the driver was lost"},
		{model.Reason{Code: model.ReasonQuotaTasks, Name: "ada", Count: 1, Limit: 1}, "ada has 1 task running, the most allowed per user"},
		{model.Reason{Code: model.ReasonQuotaGPUs, Name: "ada", Count: 2, More: 2, Limit: 3}, "ada has 2 GPUs and would have 4, of 3 allowed per user"},
		{model.Reason{Code: model.ReasonQuotaMemory, Name: "ada", Have: 20 * gib, Need: 11 * gib, Of: 30 * gib}, "ada has 20.0 GiB of GPU memory reserved and needs 11.0 GiB more, of 30.0 GiB allowed per user"},
		{model.Reason{Code: model.ReasonInterval, Span: 10 * time.Second}, "one launch every 10s"},
		{model.Reason{Code: model.ReasonHanding, Count: 64, Limit: 64}, "it fits; 64 of at most 64 launches are on their way to the engine (launches-at-once)"},
		{model.Reason{Code: model.ReasonLookAhead, Count: 2, Limit: 2}, "2 tasks ahead of it in the queue; no more than 2 that do not fit are passed over"},
		{model.Reason{Code: model.ReasonLookedAtLater, Span: 59*time.Second + 1}, "it fits by now; the queue is looked at again within 59s"},
		{model.Reason{Code: model.ReasonScattered, Count: 4, Limit: 3}, "4 GPUs fit, but no 3 of one machine together"},
	} {
		if got := Reason(row.r); got != row.want {
			t.Errorf("%s reads %q\nwant %q", row.r.Code, got, row.want)
		}
	}
}

// TestRejections checks the texts about a GPU.
func TestRejections(t *testing.T) {
	for _, row := range []struct {
		r    model.Rejection
		want string
	}{
		{model.Rejection{Rule: model.RuleMemory, Have: gib.Scale(31.2), Need: gib.Scale(12.3), Of: 40 * gib}, "GPU 0 memory 31.2 of 40.0 GiB reserved, needs 12.3"},
		{model.Rejection{Rule: model.RuleMemory, Have: 40 * gib, Need: gib, Of: 40 * gib, Learner: 3, Span: 2 * time.Minute},
			"GPU 0: task 3 has all free memory until its own is known, about 2 min after it has begun to train"},
		{model.Rejection{Rule: model.RuleMemory, Learner: 3, Span: 20 * time.Second},
			"GPU 0: task 3 has all free memory until its own is known, about 20s after it has begun to train"},
		{model.Rejection{Rule: model.RuleMinFree, Have: 3 * gib, Need: 5 * gib}, "GPU 0 has 3.0 GiB free, under the minimum of 5.0"},
		{model.Rejection{Rule: model.RuleSMACT, SMACT: 0.91, Cap: 0.8}, "GPU 0 SMACT 0.91, at or over 0.80"},
		{model.Rejection{Rule: model.RuleMaxTasks, Tasks: 2}, "GPU 0 has 2 tasks, the most allowed"},
		{model.Rejection{Rule: model.RuleWarmUp, Task: 1}, "GPU 0 is warming up task 1"},
		{model.Rejection{Rule: model.RuleIdle, Tasks: 1}, "GPU 0 has 1 task, an idle GPU is needed"},
		{model.Rejection{Rule: model.RuleAlone, Task: 1}, "GPU 0 belongs to task 1 alone"},
		{model.Rejection{Rule: model.RuleForeign, Have: 700 * units.MiB}, "GPU 0 has 700 MiB in use by processes that are not carma's, it must be free of others"},
		{model.Rejection{Rule: model.RuleFault, Fault: "Xid 79, fallen off the bus"}, "GPU 0 is out of service: Xid 79, fallen off the bus"},
		{model.Rejection{Rule: model.RuleFault, Missing: true}, "GPU 0 is out of service: not found on this machine"},
		{model.Rejection{Rule: model.RuleSick, Fault: "no device node"}, "GPU 0 starts no containers: no device node"},
		{model.Rejection{Rule: model.RuleKept, Task: 2}, "GPU 0 is kept free for task 2"},
		{model.Rejection{Rule: model.RuleSlowdown, Slowdown: 2.554, Cap: 1.6}, "GPU 0 would slow it down 2.55 times, over 1.60"},
		{model.Rejection{Rule: model.RuleSlowdown, Task: 8, Slowdown: 1.61, Cap: 1.6}, "on GPU 0 it would slow task 8 down 1.61 times, over 1.60"},
		{model.Rejection{Rule: model.RuleSlowdown, Slowdown: 1.55, Cap: 1.516, Allowed: 1.6}, "GPU 0 would slow it down 1.55 times, over 1.52, so that it surely stays below 1.60"},
		{model.Rejection{Rule: model.RuleSlowdown, Task: 8, Slowdown: 1.55, Cap: 1.516, Allowed: 1.6}, "on GPU 0 it would slow task 8 down 1.55 times, over 1.52, so that it surely stays below 1.60"},
		{model.Rejection{Rule: model.RuleUnseen, Task: 8}, "GPU 0 is closed until the activity of task 8 has been seen"},
		{model.Rejection{Rule: model.RuleWait, Tasks: 1}, "GPU 0 has 1 task, waiting for one to end costs less than sharing"},
		{model.Rejection{Rule: model.RuleSharing}, "GPU 0 has no room for its sharing score, the scores on a GPU sum to at most 2"},
		{model.Rejection{Rule: model.RuleUtilization}, "GPU 0 would be asked for more than 100 % of its time"},
		{model.Rejection{Rule: "new"}, "GPU 0 rejected: new"},
	} {
		if got := Rejection(row.r); got != row.want {
			t.Errorf("%s reads %q\nwant %q", row.r.Rule, got, row.want)
		}
	}
}

// TestWhy checks the line with the reason why a task waits.
func TestWhy(t *testing.T) {
	idle := &model.Rejection{Rule: model.RuleIdle, Tasks: 1}
	group := &queue.Turn{Later: 1, User: "ada", Account: "lab", Use: 3600, Own: "bob"}
	turn := &queue.Turn{Later: 2, User: "ada", Use: 180, Own: "bob", OwnUse: 3549}
	for _, row := range []struct {
		w    explain.Why
		want string
	}{
		{explain.Why{}, ""},
		{explain.Why{Binding: model.Reason{Code: model.ReasonTurnedDown, Limit: 1}, Nearest: idle, Away: model.Reason{Code: model.ReasonMadeWay, Task: 7, Span: 90 * time.Second}},
			"suspended 1m30s ago to make way for task 7: GPU 0 has 1 task, an idle GPU is needed"},
		{explain.Why{Binding: model.Reason{Code: model.ReasonWay, Count: 1, Task: 3, GPU: 2}}, "task 3 makes way for it on GPU 2"},
		{explain.Why{Binding: model.Reason{Code: model.ReasonWay, Count: 2, Task: 3, GPU: 2}}, "2 tasks make way for it: task 3 on GPU 2 first"},
		{explain.Why{Binding: model.Reason{Code: model.ReasonAboutToStart}}, "it fits and is about to start"},
		{explain.Why{Binding: model.Reason{Code: model.ReasonTurnedDown, Limit: 1}, Nearest: idle}, "GPU 0 has 1 task, an idle GPU is needed"},
		{explain.Why{Binding: model.Reason{Code: model.ReasonTurnedDown, Count: 1, Limit: 2}, Nearest: idle}, "1 of 2 GPUs fit; GPU 0 has 1 task, an idle GPU is needed"},
		{explain.Why{Binding: model.Reason{Code: model.ReasonTurnedDown, Count: 1, Limit: 2}, Nearest: idle, Turn: turn},
			"GPU 0 has 1 task, an idle GPU is needed; by fair share 2 later tasks of others go first, as ada has used 0.1 GPU hours and bob 1.0 GPU hours"},
		{explain.Why{Binding: model.Reason{Code: model.ReasonFairShare, Count: 1}, Turn: group},
			"by fair share 1 later task of others goes first, as group lab has used 1.0 GPU hours and bob 0.0 GPU hours"},
		{explain.Why{Binding: model.Reason{Code: model.ReasonFairShare, Count: 1}, Turn: &queue.Turn{Later: 1, User: "ada", Own: "bob", OwnUse: 3600}},
			"by fair share 1 later task of others goes first, as ada has used 0.0 GPU hours and bob 1.0 GPU hours"},
	} {
		if got := Why(row.w); got != row.want {
			t.Errorf("%+v reads %q\nwant %q", row.w, got, row.want)
		}
	}
}
