package configs

import (
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
)

// queueKeys configure the policy: when each task runs, and on which GPU.
var queueKeys = []key{
	setting("policy", "the `policy` that picks GPUs", func(c *Config) *string { return &c.Mapper.Policy }, among("policy", mapper.PolicyNames())),
	setting("booking", "memory that counts as taken: grants (booked) or samples (in use)", func(c *Config) *string { return &c.Mapper.Booking }, among("booking", model.Bookings)),
	setting("headroom", "`memory` on every GPU that is never booked", func(c *Config) *units.Bytes { return &c.Mapper.Headroom }),
	setting("margin", "`memory` that must be free beside a task's grant when it is placed", func(c *Config) *units.Bytes { return &c.Mapper.Margin }),
	setting("min-free", "least free `memory` of a GPU that gets a task; 0: off", func(c *Config) *units.Bytes { return &c.Mapper.MinFree }),
	setting("smact-cap", "SM activity (0 to 1) at which a GPU gets no further task; 0: off", func(c *Config) *float64 { return &c.Mapper.SMACTCap }, within(0, 1, "0 is off")),
	setting("smocc-cap", "smact-cap applies only if SM occupancy is at least this, or DRAM activity at least drama-cap; 0: off", func(c *Config) *float64 { return &c.Mapper.SMOCCCap }, within(0, 1, "0 is off")),
	setting("drama-cap", "smact-cap applies only if DRAM activity is at least this, or SM occupancy at least smocc-cap; 0: off", func(c *Config) *float64 { return &c.Mapper.DRAMACap }, within(0, 1, "0 is off")),
	setting("slowdown-cap", "largest slowdown that policy carma accepts for any task, relative to running alone; 0: 1.6", func(c *Config) *float64 { return &c.Mapper.SlowdownCap }, orNone(within(1, 100, "0 is policy carma's own cap"))),
	setting("max-tasks", "most tasks on one GPU; 0: no limit", func(c *Config) *int { return &c.Mapper.MaxTasks }),
	setting("warm-up", "`time` for which a GPU gets no further task after one has started on it", func(c *Config) *time.Duration { return &c.Mapper.WarmUp }),
	setting("interval", "least `time` between two launches", func(c *Config) *time.Duration { return &c.Mapper.Interval }, notNegative),
	setting("launches-at-once", "how many `launches` may be on their way to the engine at a time: more wait in carma's queue; 0: no limit", func(c *Config) *int { return &c.Mapper.LaunchesAtOnce }),
	setting("idle-first", "prefer idle GPUs, whatever the policy's order", func(c *Config) *bool { return &c.Mapper.IdleFirst }),
	setting("order", "`order` of the queue: fifo, sjf (shortest expected run first), fair (users take turns by use) or fair-sjf (the same, and each user's shortest first)", func(c *Config) *string { return &c.Mapper.Order }, among("order", model.Orders)),
	setting("fair-half-life", "with order fair or fair-sjf: `time` after which a GPU-second of use counts half; 0: 24h", func(c *Config) *time.Duration { return &c.Mapper.FairHalfLife }),
	setting("fair-weights", "with order fair or fair-sjf: `shares` of users, for example ada=2; the others have 1", func(c *Config) *[]model.Weight { return &c.Mapper.FairWeights }),
	setting("fair-accounts", "with order fair or fair-sjf: `shares` of accounts (unix groups) that take turns as one user does, for example students=3; *=1: all", func(c *Config) *[]model.Weight { return &c.Mapper.FairAccounts }),
	setting("quota-tasks", "most running tasks per user; 0: no limit", func(c *Config) *int { return &c.Mapper.QuotaTasks }),
	setting("quota-gpus", "most GPUs per user, added over the user's tasks; 0: no limit", func(c *Config) *int { return &c.Mapper.QuotaGPUs }),
	setting("quota-memory", "most `memory` reserved per user, over all GPUs; 0: no limit", func(c *Config) *units.Bytes { return &c.Mapper.QuotaMemory }),
	setting("quotas", "`limits` of single users, and of accounts together (@GROUP), for example ada:gpus=4; what is not named is as for all, none is no limit", func(c *Config) *[]model.Quota { return &c.Mapper.Quotas }),
	setting("slot", "`time` after which a running task makes way for waiting ones; 0: off", func(c *Config) *time.Duration { return &c.Mapper.Slot }),
	setting("make-way", "suspend running tasks for waiting ones of higher priority and for tasks with a terminal, where the driver can", func(c *Config) *bool { return &c.Mapper.MakeWay }),
	setting("swap-shorter", "suspend a long running task for a much shorter waiting one, where the driver can and less is waited in all", func(c *Config) *bool { return &c.Mapper.SwapShorter }),
	setting("fill-held", "let tasks that the driver can suspend run on GPUs held for a task on several, until that has all of them", func(c *Config) *bool { return &c.Mapper.FillHeld }),
	setting("learn", "book the memory that earlier runs of the same image and command have used", func(c *Config) *bool { return &c.Mapper.Learn }),
	setting("learn-memory", "`time` without growth after which others may join a task of unknown memory; 0: it gets whole GPUs", func(c *Config) *time.Duration { return &c.Mapper.LearnMemory }, notNegative),
	setting("shrink", "`time` without growth after which a grant is cut to its use; 0: never", func(c *Config) *time.Duration { return &c.Mapper.Shrink }, notNegative),
	setting("watchdog", "what happens to a task that uses more than its grant: off (nothing), warn (and book more if there is room) or relaunch (also run it again with more, if others need the room)", func(c *Config) *string { return &c.Mapper.Watchdog }, among("watchdog", model.Watchdogs)),
	setting("idle-report", "`time` after which a running task that holds GPU memory and does nothing, or has never used its GPUs, is reported; 0: never", func(c *Config) *time.Duration { return &c.Mapper.IdleReport }, notNegative),
	setting("idle-stop", "idle `time` after which a task with a terminal (run -t) is stopped: nothing typed, and its GPUs do nothing; 0: never", func(c *Config) *time.Duration { return &c.Mapper.IdleStop }, notNegative),
	setting("idle-yield", "idle `time` after which any other task is stopped that holds GPU memory and does nothing, or has never used its GPUs; 0: never", func(c *Config) *time.Duration { return &c.Mapper.IdleYield }, notNegative),
	setting("suspend-overuse", "suspend a task, where that can be, that the watchdog would stop", func(c *Config) *bool { return &c.Mapper.SuspendOveruse }),
	setting("suspend-idle", "suspend a task, where that can be, that idle-stop or idle-yield would stop", func(c *Config) *bool { return &c.Mapper.SuspendIdle }),
	setting("suspend-slots", "suspend a task, where that can be, whose slot is used up", func(c *Config) *bool { return &c.Mapper.SuspendSlots }),
	setting("suspend-moves", "suspend a running task that is moved (carma move), where that can be: it goes on at the other GPU", func(c *Config) *bool { return &c.Mapper.SuspendMoves }),
	setting("suspend-slowing", "suspend a task, where that can be, that policy carma would stop for slowing a neighbour down", func(c *Config) *bool { return &c.Mapper.SuspendSlowing }),
	setting("suspend-least", "`time` that a task runs before it is suspended again for others", func(c *Config) *time.Duration { return &c.Mapper.SuspendLeast }, notNegative),
	setting("look-ahead", "queued tasks tried at a time; 1: strictly first come, first served", func(c *Config) *int { return &c.Mapper.LookAhead }),
	setting("ageing", "`time` for which other tasks may overtake the first one that does not fit", func(c *Config) *time.Duration { return &c.Mapper.Ageing }),
	setting("recovery", "recovery after a GPU OOM: ladder (more memory, at last alone), staged (AEGIS's) or original (CARMA's: on an idle GPU)", func(c *Config) *string { return &c.Mapper.Recovery }, among("recovery", model.Recoveries)),
	setting("attempts", "launches of a task that runs out of GPU memory", func(c *Config) *int { return &c.Mapper.Attempts }),
	setting("blameless-retries", "relaunches after failures that are not the task's own", func(c *Config) *int { return &c.Mapper.BlamelessRetries }),
	setting("backoff", "`time` to wait after a failure of the engine or the driver; it doubles", func(c *Config) *time.Duration { return &c.Mapper.Backoff }),
}
