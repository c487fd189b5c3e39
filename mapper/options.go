package mapper

import (
	"fmt"
	"time"
)

// Options are the rules the mapper works by. They are part of the journal:
// the same events under the same options give the same decisions.
type Options struct {
	// Policy is the name of a row in the policy table.
	Policy string `json:"policy"`
	// Headroom is memory on every GPU that is never booked.
	Headroom Bytes `json:"headroom"`
	// MinFree rejects a GPU with less free memory than this; 0 is off.
	MinFree Bytes `json:"min_free"`
	// SMACTCap rejects a busy GPU at or above this SM activity; 0 is off.
	SMACTCap float64 `json:"smact_cap"`
	// MaxTasks is the most tasks on one GPU; 0 is no limit.
	MaxTasks int `json:"max_tasks"`
	// WarmUp closes a GPU for this long after a task has started on it, so
	// that the samples show the task before the next one comes; 0 is off.
	WarmUp time.Duration `json:"warm_up"`
	// IdleFirst prefers idle GPUs, whatever the policy's own order.
	IdleFirst bool `json:"idle_first"`
	// LookAhead is how many tasks that do not fit are passed over in each of
	// the two queues; 1 is strict first-come first-served.
	LookAhead int `json:"look_ahead"`
	// Ageing is how long the first task that does not fit may be overtaken,
	// counted from when it first was that; then GPUs are held free for it.
	Ageing time.Duration `json:"ageing"`
	// Attempts bounds how often a task is launched because of its own GPU
	// OOMs; the last of them is alone on its GPUs.
	Attempts int `json:"attempts"`
	// BlamelessRetries bounds the relaunches after deaths the task is not to
	// blame for.
	BlamelessRetries int `json:"blameless_retries"`
	// Backoff is the wait after an infrastructure failure; it doubles.
	Backoff time.Duration `json:"backoff"`
}

// DefaultOptions are those of a shared server with estimates.
func DefaultOptions() Options {
	return Options{
		Policy:           "magm",
		Headroom:         512 * MiB,
		SMACTCap:         0.80,
		WarmUp:           30 * time.Second,
		IdleFirst:        true,
		LookAhead:        64,
		Ageing:           10 * time.Minute,
		Attempts:         4,
		BlamelessRetries: 8,
		Backoff:          10 * time.Second,
	}
}

// Validate returns the first option that cannot be, with what to write instead.
func (o Options) Validate() error {
	if _, err := policyNamed(o.Policy); err != nil {
		return err
	}
	switch {
	case o.Headroom < 0:
		return fmt.Errorf("headroom is negative (%s); write for example 512M", o.Headroom)
	case o.MinFree < 0:
		return fmt.Errorf("min-free is negative (%s); write for example 5G, or 0 for off", o.MinFree)
	case o.Headroom != o.Headroom.clamp() || o.MinFree != o.MinFree.clamp():
		return fmt.Errorf("headroom (%s) and min-free (%s) cannot be larger than any GPU", o.Headroom, o.MinFree)
	case !(o.SMACTCap >= 0 && o.SMACTCap <= 1):
		return fmt.Errorf("smact-cap %v is not between 0 and 1; 0 is off", o.SMACTCap)
	case o.MaxTasks < 0:
		return fmt.Errorf("max-tasks is negative (%d); 0 is no limit", o.MaxTasks)
	case o.WarmUp < 0 || o.Ageing < 0 || o.Backoff < 0:
		return fmt.Errorf("warm-up, ageing and backoff cannot be negative; write for example 30s")
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
