package model

import (
	"fmt"
	"slices"

	"carma/internal/units"
)

// HostInfo describes the memory and processors of a machine that tasks may use. A machine
// without information has no limits.
type HostInfo struct {
	Node string `json:"node,omitempty"`
	// Total is the memory of the machine, Memory the part of it that all tasks together
	// may be allocated; the rest is for the system and the page cache.
	Total  units.Bytes `json:"total"`
	Memory units.Bytes `json:"memory"`
	// CPUs is the number of thousandths of a processor that all tasks together may be
	// allocated.
	CPUs int64 `json:"cpus"`
	// Most is the most that one task may be allocated, or 0 for all. Limit is the most
	// that a task without a request may use, or 0 for all unallocated memory.
	Most  units.Bytes `json:"most,omitempty"`
	Limit units.Bytes `json:"limit,omitempty"`
}

// HostSample is the memory use of a machine and its tasks.
type HostSample struct {
	Node string `json:"node,omitempty"`
	// Available is the memory available without swapping, or 0 if not known.
	Available units.Bytes `json:"available,omitempty"`
	Tasks     []HostUse   `json:"tasks,omitempty"`
	// Helpers are the helpers of suites.
	Helpers []HelpersUse `json:"helpers,omitempty"`
}

// HostUse is the host memory that a task uses, without its page cache.
type HostUse struct {
	Task TaskID      `json:"task"`
	Used units.Bytes `json:"used"`
}

// Host is the ledger's entry for the memory and the processors of a machine.
//
// Invariant: at a launch, Booked <= Memory and CPUsBooked <= CPUs, helpers included.
type Host struct {
	HostInfo
	// Known: if false, only tasks without a GPU are listed here.
	Known bool `json:"known,omitempty"`
	// Available is from the last sample, or 0 if not known.
	Available units.Bytes    `json:"available,omitempty"`
	Residents []HostResident `json:"residents,omitempty"`
	// Helpers are the allocations for the helpers of suites, in order of suite.
	Helpers []HelpersShare `json:"helpers,omitempty"`

	// The sums over Residents and Helpers; Settle computes them.
	Booked      units.Bytes `json:"-"`
	CPUsBooked  int64       `json:"-"`
	taken       units.Bytes // allocated, or used where that is more
	unused      units.Bytes // allocated and not used
	helpers     units.Bytes // taken by helpers
	helpersCPUs int64
}

// HostResident is the allocation of one task on a machine.
type HostResident struct {
	Task   TaskID      `json:"task"`
	Memory units.Bytes `json:"memory,omitempty"`
	CPUs   int64       `json:"cpus,omitempty"`
	Used   units.Bytes `json:"used,omitempty"` // last sample
	Peak   units.Bytes `json:"peak,omitempty"` // highest sample
	// SuspendedMemory is allocated for the GPU memory of a suspended task.
	SuspendedMemory units.Bytes `json:"away,omitempty"`
	// Lent is the part of Memory that others may use meanwhile.
	Lent units.Bytes `json:"lent,omitempty"`
	// Share is the charge to its user for a task without a GPU, in millionths of a GPU.
	Share int64 `json:"share,omitempty"`
}

// Settle computes the sums after a change of the residents or of the helpers.
func (h *Host) Settle() {
	h.Booked, h.CPUsBooked, h.taken, h.unused, h.helpers, h.helpersCPUs = 0, 0, 0, 0, 0, 0
	for i := range h.Helpers {
		o := &h.Helpers[i]
		h.helpers += max(o.Memory, o.Used)
		h.helpersCPUs += o.CPUs
		h.Booked += o.Memory
		h.unused += max(0, o.Memory-o.Used)
	}
	h.CPUsBooked, h.taken = h.helpersCPUs, h.helpers
	for i := range h.Residents {
		r := &h.Residents[i]
		booked := r.Memory - r.Lent + r.SuspendedMemory
		h.Booked += booked
		h.CPUsBooked += r.CPUs
		h.taken += max(booked, r.Used)
		h.unused += max(0, booked-r.Used)
	}
}

// TakenMemory returns the memory that is allocated, or used where that is more.
func (h *Host) TakenMemory() units.Bytes { return h.taken }

// HelpersMemory returns the part of TakenMemory that helpers take.
func (h *Host) HelpersMemory() units.Bytes { return h.helpers }

// Resident returns the entry of a task on the machine, or nil.
func (h *Host) Resident(id TaskID) *HostResident {
	for i := range h.Residents {
		if h.Residents[i].Task == id {
			return &h.Residents[i]
		}
	}
	return nil
}

// Clone returns a deep copy.
func (h *Host) Clone() *Host {
	c := *h
	c.Residents, c.Helpers = slices.Clone(h.Residents), slices.Clone(h.Helpers)
	return &c
}

// Low returns the available memory below which nothing more is launched, because the
// machine would begin to swap or to kill processes.
func (h *Host) Low() units.Bytes { return min(h.Total/20, 8*units.GiB) }

// Short reports whether the available memory of the machine is below low.
func (h *Host) Short() bool { return h.Known && h.Available > 0 && h.Available < h.Low() }

// FreeMemory returns the memory that can be allocated. Memory used outside of tasks reduces
// what is available, and tasks may still use the rest of their allocations.
func (h *Host) FreeMemory() units.Bytes {
	free := h.Memory - h.taken
	if h.Available > 0 {
		free = min(free, h.Available-h.Low()-h.unused)
	}
	return free
}

// MaxMemory returns the most memory that one task may be allocated.
func (h *Host) MaxMemory() units.Bytes {
	if h.Most > 0 {
		return min(h.Most, h.Memory)
	}
	return h.Memory
}

// HelpersShare is the allocation for the helpers of a suite on a machine.
type HelpersShare struct {
	Suite  string      `json:"suite"`
	Memory units.Bytes `json:"memory,omitempty"`
	CPUs   int64       `json:"cpus,omitempty"`
	Used   units.Bytes `json:"used,omitempty"` // last sample
}

// HelpersUse is the host memory that the helpers of a suite use, without page cache.
type HelpersUse struct {
	Suite string      `json:"suite"`
	Used  units.Bytes `json:"used"`
}

// WithoutHelpers returns what a machine has left for tasks while its helpers stay.
func (h *Host) WithoutHelpers() (memory units.Bytes, cpus int64) {
	return h.Memory - h.helpers, h.CPUs - h.helpersCPUs
}

// CheckSums returns an error if the stored sums differ from the residents and helpers.
func (h *Host) CheckSums() error {
	want := h.Clone()
	want.Settle()
	if want.Booked != h.Booked || want.CPUsBooked != h.CPUsBooked || want.taken != h.taken || want.unused != h.unused || want.helpers != h.helpers || want.helpersCPUs != h.helpersCPUs {
		return fmt.Errorf("machine %q: %s and %d CPUs booked, kept as %s and %d", h.Node, want.Booked, want.CPUsBooked, h.Booked, h.CPUsBooked)
	}
	return nil
}
