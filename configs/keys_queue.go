package configs

import (
	"carma/mapper"
)

// queueKeys are about the policy: which task runs when, and on which GPU.
var queueKeys = []key{
	{"policy", "the `policy` that picks GPUs", func(c *Config) any { return &c.Mapper.Policy }, func(c *Config) error {
		return oneOf("policy", c.Mapper.Policy, mapper.PolicyNames())
	}},
	{"booking", "memory that counts as taken: grants (booked) or samples (in use)", func(c *Config) any { return &c.Mapper.Booking }, func(c *Config) error {
		return oneOf("booking", c.Mapper.Booking, mapper.Bookings)
	}},
	{"headroom", "`memory` on every GPU that is never booked", func(c *Config) any { return &c.Mapper.Headroom }, nil},
	{"margin", "`memory` that must be free beside a task's grant when it is placed", func(c *Config) any { return &c.Mapper.Margin }, nil},
	{"min-free", "least free `memory` of a GPU that gets a task; 0: off", func(c *Config) any { return &c.Mapper.MinFree }, nil},
	{"smact-cap", "SM activity (0 to 1) at which a GPU gets no further task; 0: off", func(c *Config) any { return &c.Mapper.SMACTCap }, func(c *Config) error {
		return between(c.Mapper.SMACTCap, 0, 1, "0 is off")
	}},
	{"smocc-cap", "smact-cap applies only if SM occupancy is at least this, or DRAM activity at least drama-cap; 0: off", func(c *Config) any { return &c.Mapper.SMOCCCap }, func(c *Config) error {
		return between(c.Mapper.SMOCCCap, 0, 1, "0 is off")
	}},
	{"drama-cap", "smact-cap applies only if DRAM activity is at least this, or SM occupancy at least smocc-cap; 0: off", func(c *Config) any { return &c.Mapper.DRAMACap }, func(c *Config) error {
		return between(c.Mapper.DRAMACap, 0, 1, "0 is off")
	}},
	{"slowdown-cap", "largest slowdown that policy carma accepts for any task, relative to running alone; 0: 1.6", func(c *Config) any { return &c.Mapper.SlowdownCap }, func(c *Config) error {
		if c.Mapper.SlowdownCap == 0 {
			return nil
		}
		return between(c.Mapper.SlowdownCap, 1, 100, "0 is policy carma's own cap")
	}},
	{"max-tasks", "most tasks on one GPU; 0: no limit", func(c *Config) any { return &c.Mapper.MaxTasks }, nil},
	{"warm-up", "`time` for which a GPU gets no further task after one has started on it", func(c *Config) any { return &c.Mapper.WarmUp }, nil},
	{"interval", "least `time` between two launches", func(c *Config) any { return &c.Mapper.Interval }, func(c *Config) error {
		return notNegative(c.Mapper.Interval)
	}},
	{"launches-at-once", "how many `launches` may be on their way to the engine at a time: more wait in carma's queue; 0: no limit", func(c *Config) any { return &c.Mapper.LaunchesAtOnce }, nil},
	{"idle-first", "prefer idle GPUs, whatever the policy's order", func(c *Config) any { return &c.Mapper.IdleFirst }, nil},
	{"order", "`order` of the queue: fifo, sjf (shortest expected run first), fair (users take turns by use) or fair-sjf (the same, and each user's shortest first)", func(c *Config) any { return &c.Mapper.Order }, func(c *Config) error {
		return oneOf("order", c.Mapper.Order, mapper.Orders)
	}},
	{"fair-half-life", "with order fair or fair-sjf: `time` after which a GPU-second of use counts half; 0: 24h", func(c *Config) any { return &c.Mapper.FairHalfLife }, nil},
	{"fair-weights", "with order fair or fair-sjf: `shares` of users, for example ada=2; the others have 1", func(c *Config) any { return &c.Mapper.FairWeights }, nil},
	{"fair-accounts", "with order fair or fair-sjf: `shares` of accounts (unix groups) that take turns as one user does, for example students=3; *=1: all", func(c *Config) any { return &c.Mapper.FairAccounts }, nil},
	{"quota-tasks", "most running tasks per user; 0: no limit", func(c *Config) any { return &c.Mapper.QuotaTasks }, nil},
	{"quota-gpus", "most GPUs per user, added over the user's tasks; 0: no limit", func(c *Config) any { return &c.Mapper.QuotaGPUs }, nil},
	{"quota-memory", "most `memory` reserved per user, over all GPUs; 0: no limit", func(c *Config) any { return &c.Mapper.QuotaMemory }, nil},
	{"quotas", "`limits` of single users, and of accounts together (@GROUP), for example ada:gpus=4; what is not named is as for all, none is no limit", func(c *Config) any { return &c.Mapper.Quotas }, nil},
	{"slot", "`time` after which a running task makes way for waiting ones; 0: off", func(c *Config) any { return &c.Mapper.Slot }, nil},
	{"make-way", "suspend running tasks for waiting ones of higher priority and for tasks with a terminal, where the driver can", func(c *Config) any { return &c.Mapper.MakeWay }, nil},
	{"swap-shorter", "suspend a long running task for a much shorter waiting one, where the driver can and less is waited in all", func(c *Config) any { return &c.Mapper.SwapShorter }, nil},
	{"fill-held", "let tasks that the driver can suspend run on GPUs held for a task on several, until that has all of them", func(c *Config) any { return &c.Mapper.FillHeld }, nil},
	{"learn", "book the memory that earlier runs of the same image and command have used", func(c *Config) any { return &c.Mapper.Learn }, nil},
	{"learn-memory", "`time` without growth after which others may join a task of unknown memory; 0: it gets whole GPUs", func(c *Config) any { return &c.Mapper.LearnMemory }, func(c *Config) error {
		return notNegative(c.Mapper.LearnMemory)
	}},
	{"shrink", "`time` without growth after which a grant is cut to its use; 0: never", func(c *Config) any { return &c.Mapper.Shrink }, func(c *Config) error {
		return notNegative(c.Mapper.Shrink)
	}},
	{"watchdog", "what happens to a task that uses more than its grant: off (nothing), warn (and book more if there is room) or relaunch (also run it again with more, if others need the room)", func(c *Config) any { return &c.Mapper.Watchdog }, func(c *Config) error {
		return oneOf("watchdog", c.Mapper.Watchdog, mapper.Watchdogs)
	}},
	{"idle-report", "`time` after which a running task that holds GPU memory and does nothing, or has never used its GPUs, is reported; 0: never", func(c *Config) any { return &c.Mapper.IdleReport }, func(c *Config) error {
		return notNegative(c.Mapper.IdleReport)
	}},
	{"idle-stop", "idle `time` after which a task with a terminal (run -t) is stopped: nothing typed, and its GPUs do nothing; 0: never", func(c *Config) any { return &c.Mapper.IdleStop }, func(c *Config) error {
		return notNegative(c.Mapper.IdleStop)
	}},
	{"idle-yield", "idle `time` after which any other task is stopped that holds GPU memory and does nothing, or has never used its GPUs; 0: never", func(c *Config) any { return &c.Mapper.IdleYield }, func(c *Config) error {
		return notNegative(c.Mapper.IdleYield)
	}},
	{"suspend-overuse", "suspend a task, where that can be, that the watchdog would stop", func(c *Config) any { return &c.Mapper.SuspendOveruse }, nil},
	{"suspend-idle", "suspend a task, where that can be, that idle-stop or idle-yield would stop", func(c *Config) any { return &c.Mapper.SuspendIdle }, nil},
	{"suspend-slots", "suspend a task, where that can be, whose slot is used up", func(c *Config) any { return &c.Mapper.SuspendSlots }, nil},
	{"suspend-moves", "suspend a running task that is moved (carma move), where that can be: it goes on at the other GPU", func(c *Config) any { return &c.Mapper.SuspendMoves }, nil},
	{"suspend-slowing", "suspend a task, where that can be, that policy carma would stop for slowing a neighbour down", func(c *Config) any { return &c.Mapper.SuspendSlowing }, nil},
	{"suspend-least", "`time` that a task runs before it is suspended again for others", func(c *Config) any { return &c.Mapper.SuspendLeast }, func(c *Config) error {
		return notNegative(c.Mapper.SuspendLeast)
	}},
	{"look-ahead", "queued tasks tried at a time; 1: strictly first come, first served", func(c *Config) any { return &c.Mapper.LookAhead }, nil},
	{"ageing", "`time` for which other tasks may overtake the first one that does not fit", func(c *Config) any { return &c.Mapper.Ageing }, nil},
	{"recovery", "recovery after a GPU OOM: ladder (more memory, at last alone), staged (AEGIS's) or original (CARMA's: on an idle GPU)", func(c *Config) any { return &c.Mapper.Recovery }, func(c *Config) error {
		return oneOf("recovery", c.Mapper.Recovery, mapper.Recoveries)
	}},
	{"attempts", "launches of a task that runs out of GPU memory", func(c *Config) any { return &c.Mapper.Attempts }, nil},
	{"blameless-retries", "relaunches after failures that are not the task's own", func(c *Config) any { return &c.Mapper.BlamelessRetries }, nil},
	{"backoff", "`time` to wait after a failure of the engine or the driver; it doubles", func(c *Config) any { return &c.Mapper.Backoff }, nil},
}
