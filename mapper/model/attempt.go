package model

import (
	"time"

	"carma/internal/units"
)

// NumStarts returns the number of launches that an entry stands for.
func (a *Attempt) NumStarts() int { return max(a.Starts, 1) }

// DeviceLoss says that an attempt can no longer open the devices of its GPUs.
type DeviceLoss struct {
	State DeviceState   `json:"state"`
	GPUs  []GPUID       `json:"gpus,omitempty"`
	Since units.Instant `json:"since"`
}

// MeasuredLeast is the shortest run that counts as a measurement. Samples come every
// second, and a program that ends at once has done no work.
const MeasuredLeast = 30 * time.Second

// Measures reports whether an attempt shows how much memory its task needs: it succeeded,
// was long enough, and did not fill most of a card at its start, needed or not.
func (a *Attempt) Measures() bool {
	return a.Class == ExitOK && a.Started > 0 && a.Peak > 0 && !a.Filled && a.Ended.Sub(a.Started) >= MeasuredLeast
}

// HostShare is the allocation of an attempt on a machine. It is zero if the machine is
// not known.
type HostShare struct {
	Node   string      `json:"node,omitempty"`
	Memory units.Bytes `json:"memory,omitempty"`
	// Limit is the most memory that the container may use, or 0 if the host decides.
	Limit units.Bytes `json:"limit,omitempty"`
	// CPUs is the number of allocated thousandths of a processor. Weight is its share of
	// the processors when they are short, in the same unit.
	CPUs   int64 `json:"cpus,omitempty"`
	Weight int64 `json:"weight,omitempty"`
}

// Valid reports whether a share makes sense.
func (h HostShare) Valid() bool {
	return h.Memory == h.Memory.Clamp() && h.CPUs >= 0 && h.CPUs <= MostCPUs
}

// SuspensionSpan is one interval for which an attempt was suspended.
type SuspensionSpan struct {
	From units.Instant `json:"from"`
	To   units.Instant `json:"to"`
	GPUs []GPUID       `json:"gpus"` // that it had before
}

// Grant is the memory allocated to a task on one GPU.
type Grant struct {
	GPU    GPUID       `json:"gpu"`
	Memory units.Bytes `json:"memory"`
}

// Class is the kind of an attempt's end, as recovery distinguishes it.
type Class string

// The classes. Package recovery says what follows each.
const (
	ExitOK             Class = "ok"
	ExitProgram        Class = "program"           // the program's own fault
	ExitGPUOOM         Class = "gpu-oom"           // a GPU memory allocation failed
	ExitSuspectedOOM   Class = "suspected-gpu-oom" // an allocation failed, perhaps one of GPU memory
	ExitHostOOM        Class = "host-oom"          // the kernel killed it for host memory
	ExitInfrastructure Class = "infrastructure"    // the engine, driver or MPS failed
	ExitEvicted        Class = "evicted"           // MPS took its memory back
	ExitMPSFault       Class = "mps-fault"         // the MPS server failed
	ExitCannotStart    Class = "cannot-start"      // the container can never run as requested
	ExitStopped        Class = "stopped"           // carma stopped it
)

// Attempt is one run of a task on its GPUs.
type Attempt struct {
	N        int           `json:"n"` // from 1
	Grants   []Grant       `json:"grants"`
	Launched units.Instant `json:"launched"`          // when memory was allocated
	Started  units.Instant `json:"started,omitempty"` // when the container began to run, or 0 if never
	Ended    units.Instant `json:"ended,omitempty"`
	// SuspendedTime is the total time of its suspensions. Back is the instant of its last
	// resumption, or 0 if none. Turn is the begin of its slot less SuspendedTime then, or
	// 0 for its start.
	SuspendedTime time.Duration `json:"away,omitempty"`
	Back          units.Instant `json:"back,omitempty"`
	Turn          units.Instant `json:"turn,omitempty"`
	// Absences are its last suspensions, without the present one.
	Absences []SuspensionSpan `json:"absences,omitempty"`
	// Stays: it could not be suspended, and carma does not try again on its own.
	Stays bool `json:"stays,omitempty"`
	// Fills is the task for which its GPU was reserved when it was placed there, until
	// that one has all its GPUs, or 0.
	Fills TaskID `json:"fills,omitempty"`
	// Leaves: its program vacates its GPUs on request, see [VacatesOnRequest].
	Leaves bool  `json:"leaves,omitempty"`
	Class  Class `json:"class,omitempty"` // empty while it runs
	Code   int   `json:"code,omitempty"`
	// Peak is the highest observed memory on one of its GPUs.
	Peak units.Bytes `json:"peak,omitempty"`
	// Filled: it took most of a card at its start, needed or not.
	Filled bool `json:"filled,omitempty"`
	// Host is the allocation on its machine, HostPeak the highest observed host memory.
	Host     HostShare   `json:"host,omitzero"`
	HostPeak units.Bytes `json:"host_peak,omitempty"`
	// Devices says that it can no longer open the devices of its GPUs; otherwise nil.
	Devices *DeviceLoss `json:"devices,omitempty"`
	// Resized: Host was changed while it ran, see [Resize].
	Resized bool `json:"resized,omitempty"`
	// Message is the worker's text about its end, for people. Reason is the reason why the task
	// returned to a queue after it.
	Message string `json:"message,omitempty"`
	Reason  Reason `json:"reason,omitzero"`
	// NotAtFault means that the task did not cause the end, so that the attempt uses no retry.
	NotAtFault bool `json:"blameless,omitempty"`
	// Fault kept it from starting, through no fault of the task. Starts is the number of
	// consecutive failed launches that this entry stands for, or 0 for one; N is the
	// number of the last one.
	Fault  *Fault `json:"fault,omitempty"`
	Starts int    `json:"starts,omitempty"`
}

// SlotStart returns the begin of the slot of a running attempt, plus the time for which
// it has been suspended since.
func (a *Attempt) SlotStart() units.Instant { return max(a.Started, a.Turn).Add(a.SuspendedTime) }
