package mapper

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"carma/internal/units"
)

// Options are the rules the mapper works by. They are part of the journal:
// the same events under the same options give the same decisions.
type Options struct {
	// Policy is the name of a row in the policy table.
	Policy string `json:"policy"`
	// Headroom is memory on every GPU that is never booked.
	Headroom units.Bytes `json:"headroom"`
	// Booking is what counts as taken on a GPU; empty is [BookGrants].
	Booking string `json:"booking,omitempty"`
	// Margin is memory that must be left free beside a task's grant at the
	// moment of its placement; it is not booked.
	Margin units.Bytes `json:"margin,omitempty"`
	// MinFree rejects a GPU with less free memory than this; 0 is off.
	MinFree units.Bytes `json:"min_free"`
	// SMACTCap rejects a busy GPU at or above this SM activity; 0 is off.
	SMACTCap float64 `json:"smact_cap"`
	// SMOCCCap and DRAMACap, where set, make the SM activity cap count only
	// while SM occupancy or DRAM activity is at or above its own cap too.
	SMOCCCap float64 `json:"smocc_cap,omitempty"`
	DRAMACap float64 `json:"drama_cap,omitempty"`
	// SlowdownCap is the largest slowdown that policy carma accepts, as predicted
	// for each task on a GPU: its run time divided by that alone. 0 is 1.6.
	SlowdownCap float64 `json:"slowdown_cap,omitempty"`
	// LearnMemory is how long the memory of a task whose need is not known must
	// not have grown until others may join it. Until then it is granted all free
	// memory of its GPUs. 0: it keeps whole GPUs for itself.
	LearnMemory time.Duration `json:"learn_memory,omitempty"`
	// MaxTasks is the most tasks on one GPU; 0 is no limit.
	MaxTasks int `json:"max_tasks"`
	// WarmUp closes a GPU for this long after a task has started on it, so
	// that the samples show the task before the next one comes; 0 is off.
	WarmUp time.Duration `json:"warm_up"`
	// Interval is the least time between two launches; 0 is none.
	Interval time.Duration `json:"interval,omitempty"`
	// LaunchesAtOnce is how many launches may be on their way to the engine at a time;
	// 0 is no limit. See [LaunchAccepted].
	LaunchesAtOnce int `json:"launches_at_once,omitempty"`
	// IdleFirst prefers idle GPUs, whatever the policy's own order.
	IdleFirst bool `json:"idle_first"`
	// Order is the order of the queues; empty is [OrderFIFO].
	Order string `json:"order,omitempty"`
	// FairHalfLife is after how long a GPU-second that a user has had counts
	// half in the fair orders; 0 is 24 hours.
	FairHalfLife time.Duration `json:"fair_half_life,omitempty"`
	// FairWeights are the users' rights in the fair orders, sorted by user; who
	// is not named has 1.
	FairWeights []Weight `json:"fair_weights,omitempty"`
	// FairAccounts are the rights of accounts that take turns with each other as
	// one user does, sorted by name; [EveryAccount] is all that are not named.
	// Users whose account is neither take turns by themselves.
	FairAccounts []Weight `json:"fair_accounts,omitempty"`
	// QuotaTasks, QuotaGPUs and QuotaMemory are what the placed tasks of one
	// user may come to: their number, their GPUs (counted for each task), their
	// grants; 0 is no limit.
	QuotaTasks  int         `json:"quota_tasks,omitempty"`
	QuotaGPUs   int         `json:"quota_gpus,omitempty"`
	QuotaMemory units.Bytes `json:"quota_memory,omitempty"`
	// Quotas are those of single users, in place of these, and of accounts, beside
	// them; sorted, see quota.go.
	Quotas []Quota `json:"quotas,omitempty"`
	// Slot is how long an attempt may run while others wait that could have
	// its place; 0 is as long as it likes.
	Slot time.Duration `json:"slot,omitempty"`
	// MakeWay suspends running tasks for waiting ones of higher priority, and for
	// those with a terminal; see preempt.go.
	MakeWay bool `json:"make_way,omitempty"`
	// SwapShorter suspends a long running task for a short waiting one; see swap.go.
	// FillHeld lets tasks that can be suspended run on GPUs that are held for one on
	// several, until that has all of them; see backfill.go.
	SwapShorter bool `json:"swap_shorter,omitempty"`
	FillHeld    bool `json:"fill_held,omitempty"`
	// Learn books what earlier runs of the same task have used, where there
	// are any, in place of the estimate.
	Learn bool `json:"learn,omitempty"`
	// Watchdog is what is done about tasks that use more than their grants:
	// off, warn or relaunch; empty: off.
	Watchdog string `json:"watchdog,omitempty"`
	// Shrink is after how long without growth a task's grant is cut to what it
	// has used, and a little; 0 is never.
	Shrink time.Duration `json:"shrink,omitempty"`
	// IdleReport is after which time a running task is reported that does nothing
	// and holds GPU memory; IdleStop, after which one with a terminal is stopped in
	// which nobody types either; IdleYield, after which the others are. 0 is never.
	IdleReport time.Duration `json:"idle_report,omitempty"`
	IdleStop   time.Duration `json:"idle_stop,omitempty"`
	IdleYield  time.Duration `json:"idle_yield,omitempty"`
	// SuspendOveruse, SuspendIdle, SuspendSlots, SuspendMoves and SuspendSlowing have a
	// task suspended, where that can be, that would be stopped by the watchdog, for
	// doing nothing, at the end of its slot, to go to other GPUs, or for slowing a
	// neighbour down. SuspendLeast is how long it runs between, where others gain by
	// it: not for the watchdog and who moves it.
	SuspendOveruse bool          `json:"suspend_overuse,omitempty"`
	SuspendIdle    bool          `json:"suspend_idle,omitempty"`
	SuspendSlots   bool          `json:"suspend_slots,omitempty"`
	SuspendMoves   bool          `json:"suspend_moves,omitempty"`
	SuspendSlowing bool          `json:"suspend_slowing,omitempty"`
	SuspendLeast   time.Duration `json:"suspend_least,omitempty"`
	// LookAhead is how many tasks that do not fit are passed over in each of
	// the two queues; 1 is strict first-come first-served.
	LookAhead int `json:"look_ahead"`
	// Ageing is how long the first task that does not fit may be overtaken,
	// counted from when it first was that; then GPUs are kept free for it.
	Ageing time.Duration `json:"ageing"`
	// Recovery is what follows a GPU OOM; empty is [RecoverLadder].
	Recovery string `json:"recovery,omitempty"`
	// Attempts bounds how often a task is launched because of its own GPU
	// OOMs; the last of them is alone on its GPUs.
	Attempts int `json:"attempts"`
	// BlamelessRetries bounds the relaunches after deaths the task is not to
	// blame for.
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

// What counts as taken on a GPU.
const (
	// BookGrants: the grants of the tasks placed there, or what they use where
	// that is more.
	BookGrants = "grants"
	// BookSamples: only what the last sample showed in use, as in CARMA and
	// AEGIS. A task that has not allocated yet counts for nothing.
	BookSamples = "samples"
)

// Orders of the queues, within a priority.
const (
	OrderFIFO = "fifo" // as submitted
	OrderFair = "fair" // the user first who has had least; see fairshare.go
	OrderSJF  = "sjf"  // the shortest expected run first; see rank.go
	// OrderFairSJF is fair between users, and sjf within the tasks of each. While
	// one user alone has tasks it is sjf.
	OrderFairSJF = "fair-sjf"
)

// What follows a GPU OOM.
const (
	// RecoverLadder: more memory each time, at last GPUs of its own; others
	// go on meanwhile.
	RecoverLadder = "ladder"
	// RecoverStaged, as in AEGIS: a GPU with 10 GiB free, then 20, then alone.
	RecoverStaged = "staged"
	// RecoverOriginal, as in CARMA: idle GPUs of its own at once, and nothing
	// else is started until it has them.
	RecoverOriginal = "original"
)

// DefaultOptions are those of a shared server with estimates.
func DefaultOptions() Options { return DefaultsOf("carma") }

// DefaultsOf are the default options with those changed that a policy wants
// otherwise. The policy must be one of [PolicyNames].
func DefaultsOf(name string) Options {
	o := defaults
	o.Policy = name
	p, err := policyNamed(name)
	if err != nil {
		panic("mapper.DefaultsOf: " + err.Error())
	}
	if p.defaults != nil {
		p.defaults(&o)
	}
	return o
}

var defaults = Options{
	Headroom:         512 * units.MiB,
	SMACTCap:         0.80,
	WarmUp:           30 * time.Second,
	IdleFirst:        true,
	LookAhead:        64,
	Ageing:           10 * time.Minute,
	Attempts:         4,
	BlamelessRetries: 8,
	Backoff:          10 * time.Second,
	Watchdog:         WatchdogRelaunch,
	IdleReport:       30 * time.Minute,
	IdleStop:         4 * time.Hour,
	SuspendLeast:     suspendLeast,
}

// Validate returns the first option that cannot be, with what to write instead.
func (o Options) Validate() error {
	if _, err := policyNamed(o.Policy); err != nil {
		return err
	}
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
