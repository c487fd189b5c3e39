package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"carma/internal/units"
)

// Options are the rules of the mapper. They are part of the journal: equal events under
// equal options give equal decisions.
type Options struct {
	// Policy is the name of a row in the policy table.
	Policy string `json:"policy"`
	// Headroom is memory on every GPU that is never allocated.
	Headroom units.Bytes `json:"headroom"`
	// Booking selects how used memory of a GPU is counted. Empty means [BookGrants].
	Booking string `json:"booking,omitempty"`
	// Margin is memory that must remain free beside a task's grant at the moment of its
	// placement; it is not allocated.
	Margin units.Bytes `json:"margin,omitempty"`
	// MinFree rejects a GPU with less free memory than this; 0 is off.
	MinFree units.Bytes `json:"min_free"`
	// SMACTCap rejects a busy GPU at or above this SM activity; 0 is off.
	SMACTCap float64 `json:"smact_cap"`
	// SMOCCCap and DRAMACap, where set, make the SM activity cap count only
	// while SM occupancy or DRAM activity is at or above its own cap too.
	SMOCCCap float64 `json:"smocc_cap,omitempty"`
	DRAMACap float64 `json:"drama_cap,omitempty"`
	// SlowdownCap is the largest slowdown that policy carma accepts for each task on a
	// GPU, as predicted: its run time divided by its run time alone. 0 is 1.6.
	SlowdownCap float64 `json:"slowdown_cap,omitempty"`
	// LearnMemory is the time for which the memory of a task with unknown need must not
	// have grown before others may join it. Until then the task is granted all free
	// memory of its GPUs. If 0, it keeps whole GPUs exclusively.
	LearnMemory time.Duration `json:"learn_memory,omitempty"`
	// MaxTasks is the most tasks on one GPU; 0 is no limit.
	MaxTasks int `json:"max_tasks"`
	// WarmUp closes a GPU for this long after a task has started on it, so
	// that the samples show the task before the next one comes; 0 is off.
	WarmUp time.Duration `json:"warm_up"`
	// Interval is the least time between two launches; 0 is none.
	Interval time.Duration `json:"interval,omitempty"`
	// LaunchesAtOnce limits the launches in flight to the engine; 0 is no limit. See
	// [LaunchAccepted].
	LaunchesAtOnce int `json:"launches_at_once,omitempty"`
	// IdleFirst prefers idle GPUs, and then applies the policy's own order.
	IdleFirst bool `json:"idle_first"`
	// Order is the order of the queues; empty is [OrderFIFO].
	Order string `json:"order,omitempty"`
	// FairHalfLife is the time after which a GPU-second that a user has had counts half
	// in the fair orders; 0 is 24 hours.
	FairHalfLife time.Duration `json:"fair_half_life,omitempty"`
	// FairWeights are the users' rights in the fair orders, sorted by user; other users
	// have 1.
	FairWeights []Weight `json:"fair_weights,omitempty"`
	// FairAccounts are the rights of accounts that take turns as one user does, sorted by
	// name; [EveryAccount] stands for all accounts that are not named. Users of other
	// accounts take turns individually.
	FairAccounts []Weight `json:"fair_accounts,omitempty"`
	// QuotaTasks, QuotaGPUs and QuotaMemory limit the placed tasks of one user: their
	// number, their GPUs (counted for each task), and their grants; 0 is no limit.
	QuotaTasks  int         `json:"quota_tasks,omitempty"`
	QuotaGPUs   int         `json:"quota_gpus,omitempty"`
	QuotaMemory units.Bytes `json:"quota_memory,omitempty"`
	// Quotas are the quotas of single users, in place of these, and of accounts, in
	// addition to them; sorted, see quota.go.
	Quotas []Quota `json:"quotas,omitempty"`
	// Slot is the time for which an attempt may run while other tasks wait that could
	// have its place; 0 is no limit.
	Slot time.Duration `json:"slot,omitempty"`
	// MakeWay suspends running tasks for waiting ones of higher priority, and for waiting
	// ones with a terminal.
	MakeWay bool `json:"make_way,omitempty"`
	// SwapShorter suspends a long running task for a short waiting one; see swap.go.
	// FillHeld lets tasks that can be suspended backfill GPUs that are reserved for a
	// task on several GPUs, until that one has all of them; see backfill.go.
	SwapShorter bool `json:"swap_shorter,omitempty"`
	FillHeld    bool `json:"fill_held,omitempty"`
	// Learn allocates the memory that earlier runs of the same task have used, if there
	// are any, in place of the estimate.
	Learn bool `json:"learn,omitempty"`
	// Watchdog selects the action on tasks that exceed their grants: off, warn or relaunch. Empty
	// means off.
	Watchdog string `json:"watchdog,omitempty"`
	// Shrink is the time without growth after which a task's grant is cut to a little
	// more than it has used; 0 is never.
	Shrink time.Duration `json:"shrink,omitempty"`
	// IdleReport is the idle time after which a running task that holds GPU memory is
	// reported. IdleStop is the time after which an idle task with a terminal is stopped
	// if nobody types either; IdleYield, after which other idle tasks are. 0 is never.
	IdleReport time.Duration `json:"idle_report,omitempty"`
	IdleStop   time.Duration `json:"idle_stop,omitempty"`
	IdleYield  time.Duration `json:"idle_yield,omitempty"`
	// SuspendOveruse, SuspendIdle, SuspendSlots, SuspendMoves and SuspendSlowing suspend
	// a task, where possible, instead of stopping it: by the watchdog, for idling, at the
	// end of its slot, to move it to other GPUs, or for slowing a neighbour down.
	// SuspendLeast is the time that a task runs between suspensions for the benefit of
	// others; it does not apply to the watchdog and to moves by people.
	SuspendOveruse bool          `json:"suspend_overuse,omitempty"`
	SuspendIdle    bool          `json:"suspend_idle,omitempty"`
	SuspendSlots   bool          `json:"suspend_slots,omitempty"`
	SuspendMoves   bool          `json:"suspend_moves,omitempty"`
	SuspendSlowing bool          `json:"suspend_slowing,omitempty"`
	SuspendLeast   time.Duration `json:"suspend_least,omitempty"`
	// LookAhead is the number of tasks that do not fit and are passed over in each of the
	// two queues; 1 is strict first-come first-served.
	LookAhead int `json:"look_ahead"`
	// Ageing is the time for which the first task that does not fit may be overtaken,
	// counted from the moment it became the first; then GPUs are reserved for it.
	Ageing time.Duration `json:"ageing"`
	// Recovery selects the recovery after a GPU OOM. Empty means [RecoverLadder].
	Recovery string `json:"recovery,omitempty"`
	// Attempts bounds the launches of a task with GPU OOMs of its own; the last launch is
	// exclusive.
	Attempts int `json:"attempts"`
	// BlamelessRetries bounds the relaunches after failures not caused by the task.
	BlamelessRetries int `json:"blameless_retries"`
	// Backoff is the wait after an infrastructure failure; it doubles.
	Backoff time.Duration `json:"backoff"`
}

// Bookings, Orders and Recoveries list the values of these options, the
// default first.
var (
	Bookings   = []string{BookGrants, BookSamples}
	Orders     = []string{OrderFIFO, OrderSJF, OrderFair, OrderFairSJF}
	Recoveries = []string{RecoverLadder, RecoverStaged, RecoverOriginal}
)

// How memory taken on a GPU is counted.
const (
	// BookGrants counts the grants of the tasks placed there, or their use if that is
	// more.
	BookGrants = "grants"
	// BookSamples counts only the memory in use in the last sample, as in CARMA and
	// AEGIS. A task that has not allocated yet counts for nothing.
	BookSamples = "samples"
)

// Orders of the queues, within a priority.
const (
	OrderFIFO = "fifo" // as submitted
	OrderFair = "fair" // the user with the least use first; see fairshare.go
	OrderSJF  = "sjf"  // the shortest expected run first; see rank.go
	// OrderFairSJF is fair between users, and sjf within the tasks of each user. While
	// only one user has tasks it is sjf.
	OrderFairSJF = "fair-sjf"
)

// What follows a GPU OOM.
const (
	// RecoverLadder: more memory each time, and exclusive GPUs for the last; other tasks
	// continue meanwhile.
	RecoverLadder = "ladder"
	// RecoverStaged, as in AEGIS: a GPU with 10 GiB free, then 20, then alone.
	RecoverStaged = "staged"
	// RecoverOriginal, as in CARMA: idle exclusive GPUs at once, and no other task is
	// started until it has them.
	RecoverOriginal = "original"
)

// Validate returns an error for the first invalid option, with what to write instead.
// It accepts any name of a policy.
func (o Options) Validate() error {
	for _, choice := range []struct {
		key, value string
		values     []string
	}{
		{"booking", o.Booking, Bookings}, {"order", o.Order, Orders}, {"recovery", o.Recovery, Recoveries}, {"watchdog", o.Watchdog, Watchdogs},
	} {
		if choice.value != "" && !slices.Contains(choice.values, choice.value) {
			return fmt.Errorf("unknown %s %q; there are %s", choice.key, choice.value, strings.Join(choice.values, ", "))
		}
	}
	if err := cmp.Or(validWeights("fair-weights", "user", o.FairWeights), validWeights("fair-accounts", "account", o.FairAccounts), validQuotas(o.Quotas)); err != nil {
		return err
	}
	switch {
	case o.Headroom < 0:
		return fmt.Errorf("headroom is negative (%s); write for example 512M", o.Headroom)
	case o.MinFree < 0:
		return fmt.Errorf("min-free is negative (%s); write for example 5G, or 0 for off", o.MinFree)
	case o.Headroom != o.Headroom.Clamp() || o.MinFree != o.MinFree.Clamp():
		return fmt.Errorf("headroom (%s) and min-free (%s) cannot be larger than any GPU", o.Headroom, o.MinFree)
	case !(o.SMACTCap >= 0 && o.SMACTCap <= 1):
		return fmt.Errorf("smact-cap %v is not between 0 and 1; 0 is off", o.SMACTCap)
	case !(o.SMOCCCap >= 0 && o.SMOCCCap <= 1 && o.DRAMACap >= 0 && o.DRAMACap <= 1):
		return fmt.Errorf("smocc-cap %v and drama-cap %v are not both between 0 and 1; 0 is off", o.SMOCCCap, o.DRAMACap)
	case o.SlowdownCap != 0 && !(o.SlowdownCap >= 1 && o.SlowdownCap <= 100):
		return fmt.Errorf("slowdown-cap %v is not between 1 and 100; write for example 1.6", o.SlowdownCap)
	case o.Margin < 0 || o.Margin != o.Margin.Clamp():
		return fmt.Errorf("margin (%s) is negative or larger than any GPU; write for example 2G, or 0 for none", o.Margin)
	case o.MaxTasks < 0:
		return fmt.Errorf("max-tasks is negative (%d); 0 is no limit", o.MaxTasks)
	case min(o.WarmUp, o.Ageing, o.Backoff, o.Interval, o.Shrink, o.LearnMemory) < 0:
		return fmt.Errorf("warm-up, ageing, backoff, interval, shrink and learn-memory cannot be negative; write for example 30s")
	case o.LaunchesAtOnce < 0:
		return fmt.Errorf("launches-at-once is negative (%d); write for example 64, or 0 for no limit", o.LaunchesAtOnce)
	case o.FairHalfLife != 0 && o.FairHalfLife < time.Minute:
		return fmt.Errorf("fair-half-life is %s, less than a minute; write for example 24h", o.FairHalfLife)
	case o.QuotaTasks < 0:
		return fmt.Errorf("quota-tasks is negative (%d); 0 is no limit", o.QuotaTasks)
	case o.QuotaGPUs < 0:
		return fmt.Errorf("quota-gpus is negative (%d); 0 is no limit", o.QuotaGPUs)
	case o.QuotaMemory < 0:
		return fmt.Errorf("quota-memory is negative (%s); write for example 80G, or 0 for no limit", o.QuotaMemory)
	case o.Slot != 0 && o.Slot < time.Second:
		return fmt.Errorf("slot is %s, less than a second; write for example 2h, or 0 for off", o.Slot)
	case o.IdleReport < 0 || o.IdleStop < 0 || o.IdleYield < 0:
		return fmt.Errorf("idle-report, idle-stop and idle-yield cannot be negative; write for example 2h, or 0 for never")
	case o.SuspendLeast < 0:
		return fmt.Errorf("suspend-least is negative (%s); write for example 2m, or 0 for none", o.SuspendLeast)
	case o.Backoff > 24*time.Hour:
		return fmt.Errorf("backoff is %s, more than a day; write for example 10s", o.Backoff)
	case o.LookAhead < 1:
		return fmt.Errorf("look-ahead is %d; 1 is strict first-come first-served", o.LookAhead)
	case o.Attempts < 1:
		return fmt.Errorf("attempts is %d; a task is launched at least once", o.Attempts)
	case o.BlamelessRetries < 0:
		return fmt.Errorf("blameless-retries is negative (%d)", o.BlamelessRetries)
	}
	return nil
}

// HalfLife returns the time after which a GPU-second of past use counts half.
func (o *Options) HalfLife() time.Duration { return cmp.Or(o.FairHalfLife, defaultHalfLife) }

// Fair reports whether past use orders the queue.
func (o *Options) Fair() bool { return o.Order == OrderFair || o.Order == OrderFairSJF }

// Weight returns a user's weight.
func (o *Options) Weight(name string) float64 {
	if w, ok := find(o.FairWeights, name); ok {
		return w
	}
	return 1
}

// AccountWeight returns the weight of an account that takes turns as one, or 0 if its
// users take turns individually.
func (o *Options) AccountWeight(account string) float64 {
	if account == "" || len(o.FairAccounts) == 0 {
		return 0
	}
	if w, ok := find(o.FairAccounts, account); ok {
		return w
	}
	w, _ := find(o.FairAccounts, EveryAccount)
	return w
}

// Clone returns the options with copies of the lists.
func (o Options) Clone() Options {
	o.FairWeights, o.FairAccounts, o.Quotas = slices.Clone(o.FairWeights), slices.Clone(o.FairAccounts), slices.Clone(o.Quotas)
	return o
}

// What is done about a task that exceeds its grant. All but WatchdogOff raise the grant
// if the card has room.
const (
	WatchdogOff      = "off"
	WatchdogWarn     = "warn"
	WatchdogRelaunch = "relaunch" // and if others need the room, run it again with more
)

// Watchdogs lists the choices.
var Watchdogs = []string{WatchdogOff, WatchdogWarn, WatchdogRelaunch}

// Preempts reports whether running tasks are suspended for waiting ones.
func (o *Options) Preempts() bool { return o.MakeWay || o.SwapShorter || o.FillHeld }

// QuotaOf returns the quota of a user; 0 is no limit.
func (o *Options) QuotaOf(name string) Quota {
	q := Quota{Name: name, Tasks: o.QuotaTasks, GPUs: o.QuotaGPUs, Memory: o.QuotaMemory}
	if own, ok := o.named(Quota{Name: name}); ok {
		q.Tasks, q.GPUs, q.Memory = cmp.Or(own.Tasks, q.Tasks), cmp.Or(own.GPUs, q.GPUs), cmp.Or(own.Memory, q.Memory)
	}
	return q.bounds()
}

// AccountQuota returns the quota of an account; 0 is no limit.
func (o *Options) AccountQuota(account string) Quota {
	q, _ := o.named(Quota{Name: account, Account: true})
	q.Name, q.Account = account, true
	return q.bounds()
}

func (o *Options) named(q Quota) (Quota, bool) {
	i, ok := slices.BinarySearchFunc(o.Quotas, q, compareQuotas)
	if !ok {
		return Quota{}, false
	}
	return o.Quotas[i], true
}

// HasQuotas reports whether any quota is set.
func (o *Options) HasQuotas() bool {
	return o.QuotaTasks > 0 || o.QuotaGPUs > 0 || o.QuotaMemory > 0 || len(o.Quotas) > 0
}

// ShortestFirst reports whether a user's tasks are ordered by their run time.
func (o *Options) ShortestFirst() bool { return o.Order == OrderSJF || o.Order == OrderFairSJF }

// ByPriority reports whether tasks of a priority, in both queues, are launched before all tasks
// of lower priority.
func (o *Options) ByPriority() bool { return o.MakeWay && o.Recovery != RecoverOriginal }
