package rules

import (
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/policy"
)

// Key is one of the mapper's options in files, flags and rules.
type Key struct {
	Name  string
	Usage string
	// At returns a pointer to the field.
	At func(*model.Options) any
	// Check refuses a value of the field, or is nil if every value of the type is valid.
	Check func(*model.Options) error
}

// option returns the key of a field. check, if given, refuses a value.
func option[T any](name, usage string, at func(*model.Options) *T, check ...func(T) error) Key {
	k := Key{Name: name, Usage: usage, At: func(o *model.Options) any { return at(o) }}
	if len(check) > 0 {
		k.Check = func(o *model.Options) error { return check[0](*at(o)) }
	}
	return k
}

// Keys lists the keys in the order of the documentation. They configure the policy: when
// each task runs, and on which GPU.
var Keys = []Key{
	option("policy", "the `policy` that picks GPUs", func(o *model.Options) *string { return &o.Policy }, Among("policy", policy.Names())),
	option("booking", "memory that counts as taken: grants (booked) or samples (in use)", func(o *model.Options) *string { return &o.Booking }, Among("booking", model.Bookings)),
	option("headroom", "`memory` on every GPU that is never booked", func(o *model.Options) *units.Bytes { return &o.Headroom }),
	option("margin", "`memory` that must be free beside a task's grant when it is placed", func(o *model.Options) *units.Bytes { return &o.Margin }),
	option("min-free", "least free `memory` of a GPU that gets a task; 0: off", func(o *model.Options) *units.Bytes { return &o.MinFree }),
	option("smact-cap", "SM activity (0 to 1) at which a GPU gets no further task; 0: off", func(o *model.Options) *float64 { return &o.SMACTCap }, Within(0, 1, "0 is off")),
	option("smocc-cap", "smact-cap applies only if SM occupancy is at least this, or DRAM activity at least drama-cap; 0: off", func(o *model.Options) *float64 { return &o.SMOCCCap }, Within(0, 1, "0 is off")),
	option("drama-cap", "smact-cap applies only if DRAM activity is at least this, or SM occupancy at least smocc-cap; 0: off", func(o *model.Options) *float64 { return &o.DRAMACap }, Within(0, 1, "0 is off")),
	option("slowdown-cap", "largest slowdown that policy carma accepts for any task, relative to running alone; 0: 1.6", func(o *model.Options) *float64 { return &o.SlowdownCap }, OrNone(Within(1, 100, "0 is policy carma's own cap"))),
	option("max-tasks", "most tasks on one GPU; 0: no limit", func(o *model.Options) *int { return &o.MaxTasks }),
	option("warm-up", "`time` for which a GPU gets no further task after one has started on it", func(o *model.Options) *time.Duration { return &o.WarmUp }),
	option("interval", "least `time` between two launches", func(o *model.Options) *time.Duration { return &o.Interval }, NotNegative),
	option("launches-at-once", "how many `launches` may be on their way to the engine at a time: more wait in carma's queue; 0: no limit", func(o *model.Options) *int { return &o.LaunchesAtOnce }),
	option("idle-first", "prefer idle GPUs, whatever the policy's order", func(o *model.Options) *bool { return &o.IdleFirst }),
	option("order", "`order` of the queue: fifo, sjf (shortest expected run first), fair (users take turns by use) or fair-sjf (the same, and each user's shortest first)", func(o *model.Options) *string { return &o.Order }, Among("order", model.Orders)),
	option("fair-half-life", "with order fair or fair-sjf: `time` after which a GPU-second of use counts half; 0: 24h", func(o *model.Options) *time.Duration { return &o.FairHalfLife }),
	option("fair-weights", "with order fair or fair-sjf: `shares` of users, for example ada=2; the others have 1", func(o *model.Options) *[]model.Weight { return &o.FairWeights }),
	option("fair-accounts", "with order fair or fair-sjf: `shares` of accounts (unix groups) that take turns as one user does, for example students=3; *=1: all", func(o *model.Options) *[]model.Weight { return &o.FairAccounts }),
	option("quota-tasks", "most running tasks per user; 0: no limit", func(o *model.Options) *int { return &o.QuotaTasks }),
	option("quota-gpus", "most GPUs per user, added over the user's tasks; 0: no limit", func(o *model.Options) *int { return &o.QuotaGPUs }),
	option("quota-memory", "most `memory` reserved per user, over all GPUs; 0: no limit", func(o *model.Options) *units.Bytes { return &o.QuotaMemory }),
	option("quotas", "`limits` of single users, and of accounts together (@GROUP), for example ada:gpus=4; what is not named is as for all, none is no limit", func(o *model.Options) *[]model.Quota { return &o.Quotas }),
	option("slot", "`time` after which a running task makes way for waiting ones; 0: off", func(o *model.Options) *time.Duration { return &o.Slot }),
	option("make-way", "suspend running tasks for waiting ones of higher priority and for tasks with a terminal, where the driver can", func(o *model.Options) *bool { return &o.MakeWay }),
	option("swap-shorter", "suspend a long running task for a much shorter waiting one, where the driver can and less is waited in all", func(o *model.Options) *bool { return &o.SwapShorter }),
	option("fill-held", "let tasks that the driver can suspend run on GPUs held for a task on several, until that has all of them", func(o *model.Options) *bool { return &o.FillHeld }),
	option("learn", "book the memory that earlier runs of the same image and command have used", func(o *model.Options) *bool { return &o.Learn }),
	option("learn-memory", "`time` without growth after which others may join a task of unknown memory; 0: it gets whole GPUs", func(o *model.Options) *time.Duration { return &o.LearnMemory }, NotNegative),
	option("shrink", "`time` without growth after which a grant is cut to its use; 0: never", func(o *model.Options) *time.Duration { return &o.Shrink }, NotNegative),
	option("watchdog", "what happens to a task that uses more than its grant: off (nothing), warn (and book more if there is room) or relaunch (also run it again with more, if others need the room)", func(o *model.Options) *string { return &o.Watchdog }, Among("watchdog", model.Watchdogs)),
	option("idle-report", "`time` after which a running task that holds GPU memory and does nothing, or has never used its GPUs, is reported; 0: never", func(o *model.Options) *time.Duration { return &o.IdleReport }, NotNegative),
	option("idle-stop", "idle `time` after which a task with a terminal (run -t) is stopped: nothing typed, and its GPUs do nothing; 0: never", func(o *model.Options) *time.Duration { return &o.IdleStop }, NotNegative),
	option("idle-yield", "idle `time` after which any other task is stopped that holds GPU memory and does nothing, or has never used its GPUs; 0: never", func(o *model.Options) *time.Duration { return &o.IdleYield }, NotNegative),
	option("suspend-overuse", "suspend a task, where that can be, that the watchdog would stop", func(o *model.Options) *bool { return &o.SuspendOveruse }),
	option("suspend-idle", "suspend a task, where that can be, that idle-stop or idle-yield would stop", func(o *model.Options) *bool { return &o.SuspendIdle }),
	option("suspend-slots", "suspend a task, where that can be, whose slot is used up", func(o *model.Options) *bool { return &o.SuspendSlots }),
	option("suspend-moves", "suspend a running task that is moved (carma move), where that can be: it goes on at the other GPU", func(o *model.Options) *bool { return &o.SuspendMoves }),
	option("suspend-slowing", "suspend a task, where that can be, that policy carma would stop for slowing a neighbour down", func(o *model.Options) *bool { return &o.SuspendSlowing }),
	option("suspend-least", "`time` that a task runs before it is suspended again for others", func(o *model.Options) *time.Duration { return &o.SuspendLeast }, NotNegative),
	option("look-ahead", "queued tasks tried at a time; 1: strictly first come, first served", func(o *model.Options) *int { return &o.LookAhead }),
	option("ageing", "`time` for which other tasks may overtake the first one that does not fit", func(o *model.Options) *time.Duration { return &o.Ageing }),
	option("recovery", "recovery after a GPU OOM: ladder (more memory, at last alone), staged (AEGIS's) or original (CARMA's: on an idle GPU)", func(o *model.Options) *string { return &o.Recovery }, Among("recovery", model.Recoveries)),
	option("attempts", "launches of a task that runs out of GPU memory", func(o *model.Options) *int { return &o.Attempts }),
	option("blameless-retries", "relaunches after failures that are not the task's own", func(o *model.Options) *int { return &o.BlamelessRetries }),
	option("backoff", "`time` to wait after a failure of the engine or the driver; it doubles", func(o *model.Options) *time.Duration { return &o.Backoff }),
}
