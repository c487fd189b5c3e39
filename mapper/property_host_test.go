package mapper

import (
	"maps"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"

	"pgregory.net/rapid"
)

// anyHost draws the host resources that a task requests; some tasks use no GPU.
func (m *machine) anyHost(t *rapid.T, r *model.Request) {
	if r.NoGPU = rapid.IntRange(0, 4).Draw(t, "no GPU") == 0; r.NoGPU {
		r.GPUs, r.Exclusive = 0, false
	}
	r.HostMem = rapid.SampledFrom([]units.Bytes{0, 0, units.GiB, 20 * units.GiB, 60 * units.GiB}).Draw(t, "host memory")
	if rapid.IntRange(0, 3).Draw(t, "reserves") == 0 {
		r.HostReserve = rapid.SampledFrom([]units.Bytes{units.GiB, 10 * units.GiB}).Draw(t, "host reserve")
	}
	r.CPUs = rapid.SampledFrom([]int64{0, 0, 500, 4000}).Draw(t, "CPUs")
}

// findHosts sends the memory and the processors of some machines.
func (m *machine) findHosts(t *rapid.T) {
	m.hosts = map[string]model.HostInfo{}
	ev := model.HostsFound{At: m.now}
	for _, node := range []string{"a", "b"} {
		if rapid.Bool().Draw(t, "unknown") {
			continue
		}
		h := model.HostInfo{
			Node: node, Total: 70 * units.GiB, Memory: rapid.SampledFrom([]units.Bytes{2 * units.GiB, 30 * units.GiB, 64 * units.GiB}).Draw(t, "memory"),
			CPUs:  rapid.SampledFrom([]int64{1000, 6000, 64000}).Draw(t, "processors"),
			Most:  rapid.SampledFrom([]units.Bytes{0, 0, 16 * units.GiB}).Draw(t, "most"),
			Limit: rapid.SampledFrom([]units.Bytes{0, 0, 4 * units.GiB}).Draw(t, "limit"),
		}
		m.hosts[node] = h
		ev.Hosts = append(ev.Hosts, h)
	}
	m.step(t, ev)
}

// hostSamples draws the memory use of some machines and their tasks.
func (m *machine) hostSamples(t *rapid.T) (all []model.HostSample) {
	for _, h := range m.s.Hosts() {
		s := model.HostSample{Node: h.Node, Available: rapid.SampledFrom([]units.Bytes{0, 0, units.GiB, 3 * units.GiB, 20 * units.GiB, 60 * units.GiB}).Draw(t, "available")}
		for _, r := range h.Residents {
			s.Tasks = append(s.Tasks, model.HostUse{Task: r.Task, Used: anyMemory(t)})
		}
		for _, o := range h.Helpers {
			s.Helpers = append(s.Helpers, model.HelpersUse{Suite: o.Suite, Used: anyMemory(t)})
		}
		all = append(all, s)
	}
	return all
}

// booksHelpers starts helpers, changes their allocation, or removes them. It sometimes checks
// first whether they fit.
func (m *machine) booksHelpers(t *rapid.T) {
	ev := model.HelpersBooked{
		At: m.now, Node: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node"), Suite: rapid.SampledFrom([]string{"1/x", "1/y", "2/x"}).Draw(t, "suite"),
		Memory: rapid.SampledFrom([]units.Bytes{0, 0, units.GiB, 10 * units.GiB, 40 * units.GiB}).Draw(t, "memory"),
		CPUs:   rapid.SampledFrom([]int64{0, 0, 1000, 5000}).Draw(t, "processors"),
	}
	no := m.s.HelpersFit(ev.Node, ev.Suite, ev.Memory, ev.CPUs)
	if no.Code == "" || rapid.IntRange(0, 3).Draw(t, "anyway") == 0 {
		m.step(t, ev)
	}
	if info := m.hosts[ev.Node]; no.Code == "" && info.Total > 0 {
		if memory, cpus := m.bookedOn(ev.Node); ev.Memory > 0 && memory > info.Memory || ev.CPUs > 0 && cpus > info.CPUs {
			t.Fatalf("%+v fits, and then %s and %d CPUs are booked on %+v", ev, memory, cpus, info)
		}
	}
}

// bookHelpers records the new allocation of helpers, which is exactly the one in the
// event.
func (m *machine) bookHelpers(e model.HelpersBooked) {
	key := [2]string{e.Node, e.Suite}
	if e.Memory == 0 && e.CPUs == 0 {
		delete(m.helpers, key)
	} else {
		m.helpers[key] = e
	}
}

// bookHostUse records the sampled use of tasks on known machines.
func (m *machine) bookHostUse(e model.Sampled) {
	for _, in := range e.Hosts {
		on := func(id model.TaskID) bool {
			l, ok := m.container(id)
			return ok && l.Host.Node == in.Node && (l.Host != model.HostShare{} || len(l.Grants) == 0)
		}
		for id := range m.seenHost {
			if on(id) {
				delete(m.seenHost, id)
			}
		}
		for _, u := range in.Tasks {
			if on(u.Task) {
				m.seenHost[u.Task] = u.Used.Clamp()
			}
		}
	}
}

// bookedOn returns the allocation of tasks and helpers on a machine according to the accounts
// of the test's machine. The memory lent by a suspending or resuming task counts as free.
func (m *machine) bookedOn(node string) (memory units.Bytes, cpus int64) {
	for id, l := range m.live {
		if l.Host.Node != node {
			continue
		}
		memory, cpus = memory+l.Host.Memory, cpus+l.Host.CPUs
		if m.leaving[id] == l.Attempt || m.returning[id] == l.Attempt {
			memory -= m.lent[id]
		}
	}
	for _, o := range m.helpers {
		if o.Node == node {
			memory, cpus = memory+o.Memory, cpus+o.CPUs
		}
	}
	return memory, cpus
}

// checkHost checks a launch against the allocations of the machine in the accounts.
func (m *machine) checkHost(t *rapid.T, l model.Launch) {
	want, info := m.shape[l.Task], m.hosts[l.Host.Node]
	if len(l.Grants) > 0 { // the entry of an adopted container's GPU may lack the machine
		i := slices.IndexFunc(m.s.GPUs(), func(g model.GPU) bool { return g.ID == l.Grants[0].GPU })
		if node := m.s.GPUs()[i].Node; m.hosts[node].Total > 0 && l.Host.Node != node {
			t.Fatalf("launched %+v with a share of another machine than %q", l, node)
		}
	}
	if info.Total == 0 {
		if l.Host.Memory != 0 || want.NoGPU && len(m.hosts) > 0 {
			t.Fatalf("launched %+v where nothing is known of the machine; known: %v", l, slices.Sorted(maps.Keys(m.hosts)))
		}
		return
	}
	if want.HostMem > 0 && l.Host.Limit != want.HostMem || want.HostMem > 0 && want.HostReserve == 0 && l.Host.Memory != want.HostMem || want.CPUs > 0 && l.Host.CPUs != want.CPUs || l.Host.Memory <= 0 || l.Host.Limit < l.Host.Memory {
		t.Fatalf("launched %+v for %+v on %+v", l, want, info)
	}
	memory, cpus := m.bookedOn(l.Host.Node)
	if memory > info.Memory || l.Host.CPUs > 0 && cpus > info.CPUs {
		t.Fatalf("launched %+v: %s and %d CPUs booked on %+v", l, memory, cpus, info)
	}
}
