package mapper

import (
	"cmp"
	"slices"

	"carma/internal/units"
)

// HostInfo is what tasks may have of a machine beside its GPUs. A machine of which
// nothing is told gives what is wanted.
type HostInfo struct {
	Node string `json:"node,omitempty"`
	// Total is the memory of the machine, Memory what all tasks together may book
	// of it: the rest is for the system and the page cache.
	Total  units.Bytes `json:"total"`
	Memory units.Bytes `json:"memory"`
	// CPUs are thousandths of a processor that all tasks together may book.
	CPUs int64 `json:"cpus"`
	// Most is what one task may book; 0: all. Limit is the most that a task may use
	// that has not asked for an amount; 0: what nobody has booked.
	Most  units.Bytes `json:"most,omitempty"`
	Limit units.Bytes `json:"limit,omitempty"`
}

// HostsFound tells the memory and the processors of the machines. One that is not
// in the list gives what is wanted.
type HostsFound struct {
	At    units.Instant `json:"at"`
	Hosts []HostInfo    `json:"hosts"`
}

func (e HostsFound) when() units.Instant { return e.At }
func (HostsFound) kind() string          { return "hosts-found" }
func (HostsFound) about() TaskID         { return 0 }

// HostSample is what a machine and its tasks use of its memory.
type HostSample struct {
	Node string `json:"node,omitempty"`
	// Available is what can be had without swapping; 0: it is not known.
	Available units.Bytes `json:"available,omitempty"`
	Tasks     []HostUse   `json:"tasks,omitempty"`
	// Helpers are those of suites.
	Helpers []HelpersUse `json:"helpers,omitempty"`
}

// HostUse is the host memory that a task uses, without its page cache.
type HostUse struct {
	Task TaskID      `json:"task"`
	Used units.Bytes `json:"used"`
}

// HostShare is what is booked of a machine for an attempt. The zero value: nothing
// is booked, as nothing is known of the machine.
type HostShare struct {
	Node   string      `json:"node,omitempty"`
	Memory units.Bytes `json:"memory,omitempty"`
	// Limit is the memory that the container may use at most; 0: the host decides.
	Limit units.Bytes `json:"limit,omitempty"`
	// CPUs are booked thousandths of a processor. Weight is the part of the processors
	// that it has a right to where they are short, in the same unit.
	CPUs   int64 `json:"cpus,omitempty"`
	Weight int64 `json:"weight,omitempty"`
}

// Host is the ledger's page for the memory and the processors of a machine.
//
// Invariant: at a launch, Booked <= Memory and CPUsBooked <= CPUs, helpers included.
type Host struct {
	HostInfo
	// Known: else only the tasks without a GPU are entered.
	Known bool `json:"known,omitempty"`
	// Available is that of the last sample; 0: not known.
	Available units.Bytes    `json:"available,omitempty"`
	Residents []HostResident `json:"residents,omitempty"`
	// Helpers have the helpers of suites booked, in order of their suite.
	Helpers []HelpersShare `json:"helpers,omitempty"`

	// The sums of both; settle works them out.
	Booked      units.Bytes `json:"-"`
	CPUsBooked  int64       `json:"-"`
	taken       units.Bytes // booked, or used where that is more
	unused      units.Bytes // booked and not used
	helpers     units.Bytes // taken by helpers
	helpersCPUs int64
}

// HostResident is what one task has of a machine.
type HostResident struct {
	Task   TaskID      `json:"task"`
	Memory units.Bytes `json:"memory,omitempty"`
	CPUs   int64       `json:"cpus,omitempty"`
	Used   units.Bytes `json:"used,omitempty"` // last sample
	Peak   units.Bytes `json:"peak,omitempty"` // highest sample
	// Away is booked for what the task has, or had, on GPUs, while it is suspended.
	SuspendedMemory units.Bytes `json:"away,omitempty"`
	// Lent is what others may have of Memory meanwhile.
	Lent units.Bytes `json:"lent,omitempty"`
	// Share is what its user is charged for a task without a GPU, in millionths of a
	// GPU.
	Share int64 `json:"share,omitempty"`
}

func (h *Host) settle() {
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

func (h *Host) resident(id TaskID) *HostResident {
	for i := range h.Residents {
		if h.Residents[i].Task == id {
			return &h.Residents[i]
		}
	}
	return nil
}

func (h *Host) clone() *Host {
	c := *h
	c.Residents, c.Helpers = slices.Clone(h.Residents), slices.Clone(h.Helpers)
	return &c
}

// host returns the page of a machine, or nil.
func (s *State) host(node string) *Host {
	for _, h := range s.hosts {
		if h.Node == node {
			return h
		}
	}
	return nil
}

// openHost returns the page of a machine, made if there is none.
func (s *State) openHost(node string) *Host {
	if h := s.host(node); h != nil {
		return h
	}
	h := &Host{HostInfo: HostInfo{Node: node}}
	s.hosts = append(s.hosts, h)
	slices.SortFunc(s.hosts, func(a, b *Host) int { return cmp.Compare(a.Node, b.Node) })
	return h
}

// closeHosts drops the pages that say nothing.
func (s *State) closeHosts() {
	s.hosts = slices.DeleteFunc(s.hosts, func(h *Host) bool { return !h.Known && len(h.Residents)+len(h.Helpers) == 0 })
}

func (s *State) hostsFound(ev HostsFound) {
	for _, h := range s.hosts {
		h.HostInfo, h.Known, h.Available = HostInfo{Node: h.Node}, false, 0
	}
	for _, info := range ev.Hosts {
		info.Total, info.Memory, info.Most, info.Limit = info.Total.Clamp(), info.Memory.Clamp(), info.Most.Clamp(), info.Limit.Clamp()
		info.CPUs = max(0, min(info.CPUs, mostCPUs))
		h := s.openHost(info.Node)
		h.HostInfo, h.Known = info, true
	}
	s.closeHosts()
	s.dirty = true
}

// mostCPUs bounds the processors of a machine and of a task.
const mostCPUs = 1_000_000_000

// hostSampled enters what the machines' memory was seen to be used for.
func (s *State) hostSampled(samples []HostSample) {
	for i := range samples {
		in := &samples[i]
		h := s.host(in.Node)
		if h == nil {
			continue
		}
		free := h.free()
		h.Available = in.Available.Clamp()
		for j := range h.Residents {
			h.Residents[j].Used = 0
		}
		for _, u := range in.Tasks {
			if r := h.resident(u.Task); r != nil {
				r.Used = u.Used.Clamp()
				r.Peak = max(r.Peak, r.Used)
			}
		}
		for j := range h.Helpers {
			h.Helpers[j].Used = 0
		}
		for _, u := range in.Helpers {
			if j := slices.IndexFunc(h.Helpers, func(o HelpersShare) bool { return o.Suite == u.Suite }); j >= 0 {
				h.Helpers[j].Used = u.Used.Clamp()
			}
		}
		h.settle()
		s.dirty = s.dirty || h.free() > free
		s.guardHost(h)
	}
}

// low is the available memory below which nothing more is launched: the machine
// would begin to swap or to kill.
func (h *Host) low() units.Bytes { return min(h.Total/20, 8*units.GiB) }

// short reports whether the machine has less memory available than that.
func (h *Host) short() bool { return h.Known && h.Available > 0 && h.Available < h.low() }

// free is the memory that can be booked. Memory that others than tasks use lets less
// be available, and what tasks have booked and not used yet will be wanted.
func (h *Host) free() units.Bytes {
	free := h.Memory - h.taken
	if h.Available > 0 {
		free = min(free, h.Available-h.low()-h.unused)
	}
	return free
}

// most is what one task may book.
func (h *Host) most() units.Bytes {
	if h.Most > 0 {
		return min(h.Most, h.Memory)
	}
	return h.Memory
}

// shareAt is what a launch books of the machine it goes to.
func (s *State) shareAt(t *Task, gpus []*GPU) HostShare {
	if t.GPUs == 0 {
		h, _ := s.hostFor(t)
		return s.hostShare(t, h)
	}
	h := s.host(gpus[0].Node)
	if h == nil || !h.Known {
		return HostShare{}
	}
	return s.hostShare(t, h)
}

// settleIn enters an attempt on the page of its machine; moveOut takes it off.
func (s *State) settleIn(t *Task, share HostShare) {
	if share == (HostShare{}) && t.GPUs > 0 {
		return
	}
	h := s.openHost(share.Node)
	h.Residents = append(h.Residents, HostResident{Task: t.ID, Memory: share.Memory, CPUs: share.CPUs})
	h.settle()
}

func (s *State) moveOut(t *Task, a *Attempt) {
	h := s.host(a.Host.Node)
	if h == nil {
		return
	}
	if r := h.resident(t.ID); r != nil {
		a.HostPeak = max(a.HostPeak, r.Peak)
		h.Residents = slices.DeleteFunc(h.Residents, func(r HostResident) bool { return r.Task == t.ID })
		h.settle()
		s.closeHosts()
	}
}

// bare returns the residents of machines that have no GPU, in order.
func (s *State) bare() (all []*Task) {
	for _, h := range s.hosts {
		for i := range h.Residents {
			if t := s.tasks[h.Residents[i].Task]; t.GPUs == 0 {
				all = append(all, t)
			}
		}
	}
	return all
}

// Hosts returns copies of the pages of the machines, in order.
func (s *State) Hosts() []Host {
	all := make([]Host, len(s.hosts))
	for i, h := range s.hosts {
		all[i] = *h.clone()
	}
	return all
}
