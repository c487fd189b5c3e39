package limiter

import (
	"carma/internal/units"
	"carma/runner/limits"
)

// Modes of limiting the GPU memory of tasks, beside their frameworks and the watchdog.
const (
	// ModeAuto limits memory by the driver where that is possible, and by MPS where MPS
	// is on.
	ModeAuto = "auto"
	// ModeDriver does the same, but a task does not start if the driver cannot limit its
	// GPUs.
	ModeDriver = "driver"
	// ModeMPS limits memory by MPS only.
	ModeMPS = "mps"
	// ModeOff uses neither.
	ModeOff = "off"
)

// Options configure the limits of tasks' GPU memory. The zero value is ModeOff and CapsOff.
type Options struct {
	// Mode is ModeAuto, ModeDriver, ModeMPS or ModeOff; empty means off. The limits of
	// MPS are in package sharing.
	Mode string
	// Keeper sets the driver's limits, or is nil if none are set.
	Keeper *limits.Keeper
	// Burst lets a task use more than its grant: the memory that is free on its
	// GPUs when it starts. Only the grant is guaranteed.
	Burst bool
	// Caps is CapsGrowth, CapsFractions or CapsOff; empty means off.
	Caps string
	// Context is the memory of a CUDA context, which an allocator does not
	// count.
	Context units.Bytes
	// User returns the uid that sets the limits. Nil means this process's uid. For tests.
	User func() int
}

// driver reports whether the driver is to limit tasks.
func (o Options) driver() bool {
	return o.Keeper != nil && (o.Mode == ModeAuto || o.Mode == ModeDriver)
}

// CannotLimitError says that the driver must limit tasks and cannot. Fix is the fix, or
// empty if there is none.
type CannotLimitError struct{ Why, Fix string }

// Error returns why.
func (e *CannotLimitError) Error() string { return "GPU memory cannot be limited: " + e.Why }

// How frameworks are made to limit their own memory.
const (
	// CapsGrowth makes frameworks take memory as they need it, not all at their start.
	CapsGrowth = "growth"
	// CapsFractions in addition limits their allocators to the grant.
	CapsFractions = "fractions"
	// CapsOff sets no limits in frameworks.
	CapsOff = "off"
)
