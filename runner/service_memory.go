package runner

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/api"
	"carma/runner/helpers"
	"carma/runner/loop"
	"carma/runner/record"
	"carma/runner/request"
)

// HelperBounds is the default share of the machine for a helper.
type HelperBounds struct {
	HostMem units.Bytes // limit; if 0, a part of a task's limit
	Reserve units.Bytes // reservation; if 0, a part of the limit
	CPUs    float64     // limit; if 0, a part of a task's limit
}

// Without a setting, a helper's memory limit is 1/helperPart of the largest limit of a
// task, and its processor limit is 1/helperCPUPart. 1/helperReserve of the memory limit
// is allocated. No value is less than the minimums below.
const (
	helperPart    = 8
	helperCPUPart = 4
	helperReserve = 8

	leastHelper   = 512 * units.MiB
	leastReserved = 256 * units.MiB
	leastCPUs     = 1
)

// boundHelper sets the share of a helper's container.
func (b Bounds) boundHelper(spec *containers.Spec, s api.Submit) {
	b.Default.HostMem = max(b.helperMem(), units.Bytes(s.HostReserve))
	b.Default.CPUs = min(b.Most.CPUs, cmp.Or(b.Helper.CPUs, b.Default.CPUs, max(b.Most.CPUs/helperCPUPart, leastCPUs)))
	b.bound(spec, s, model.HostShare{})
}

// helperMem returns the memory limit of a helper that requests no amount.
func (b Bounds) helperMem() units.Bytes {
	return min(b.Default.HostMem, cmp.Or(b.Helper.HostMem, max(b.Most.HostMem/helperPart, leastHelper)))
}

// reserved returns the resources allocated for a helper's container. As for tasks, this is the
// reservation, or the requested limit if there is no reservation, or a part of the default
// limit if neither is set. Processors are allocated only on request.
func (b Bounds) reserved(s *api.Submit) helpers.Share {
	limit := b.helperMem()
	own := min(limit, cmp.Or(b.Helper.Reserve, max(limit/helperReserve, leastReserved)))
	return helpers.Share{HostMem: cmp.Or(s.HostReserve, s.HostMem, int64(own)), CPUs: cmp.Or(s.CPUsReserve, s.CPUs)}
}

// helperBooks allocates the machine's memory and processors to helpers.
type helperBooks struct{ *Runner }

func (b helperBooks) Reserved(s *api.Submit) helpers.Share { return b.live().Bounds.reserved(s) }

func (b helperBooks) Book(ctx context.Context, suite string, share helpers.Share, how helpers.How) error {
	ev := model.HelpersBooked{Suite: suite, Memory: units.Bytes(share.HostMem), CPUs: milli(share.CPUs)}
	return b.loop.Do(ctx, &loop.Change{Fresh: true, Vital: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		if how != helpers.Must {
			if err := noPlace(b.loop.State().HelpersFit(ev.Node, suite, ev.Memory, ev.CPUs), how); err != nil {
				return nil, nil, err
			}
		}
		if how == helpers.Look || b.booked(suite) == (model.HelpersShare{Suite: suite, Memory: ev.Memory, CPUs: ev.CPUs}) {
			return nil, nil, nil
		}
		ev.At = now
		return []model.Event{ev}, nil, nil
	}})
}

// noPlace returns the error for helpers that do not fit. It returns nil if they fit. It also
// returns nil if the caller only checks, and they could fit at another time.
func noPlace(no model.Reason, how helpers.How) error {
	switch {
	case no.Code == "":
		return nil
	case no.Code == model.ReasonTooMuchHost:
		return request.Errorf(422, "its helpers would have %s of host memory booked, and all tasks and helpers together may have %s (all-host-mem); write less as mem_limit, or as reservations", no.Need, no.Of)
	case no.Code == model.ReasonTooManyCPUs:
		return request.Errorf(422, "its helpers would have %g processors booked, and all tasks and helpers together may have %g (all-cpus); write less as cpus, or as reservations", processors(int64(no.More)), processors(int64(no.Limit)))
	case how == helpers.Look:
		return nil
	}
	return &helpers.FullError{Text: words.Reason(no)}
}

// booked returns the resources that the state allocates to a suite, without the measured
// use. Only the loop calls it.
func (b helperBooks) booked(suite string) model.HelpersShare {
	for _, h := range b.loop.State().Hosts() {
		if i := slices.IndexFunc(h.Helpers, func(o model.HelpersShare) bool { return o.Suite == suite }); i >= 0 {
			o := h.Helpers[i]
			o.Used = 0
			return o
		}
	}
	return model.HelpersShare{Suite: suite}
}

// suites returns the suites with an allocation. Only the loop calls it, or the start before
// the loop.
func (b helperBooks) suites() (names []string) {
	for _, h := range b.loop.State().Hosts() {
		for _, o := range h.Helpers {
			names = append(names, o.Suite)
		}
	}
	return names
}

func (b helperBooks) Follow(suite, container, id string) {
	b.hostMem.followHelper(suite, container, id)
}

func (b helperBooks) Forget(suite string) { b.hostMem.forgetHelpers(suite) }

// followHelper reads the memory of a helper's container from now on. If the name was
// followed before, it belongs to a new container now.
func (h *hostMemory) followHelper(suite, container, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.suites[suite] == nil {
		h.suites[suite] = map[string]*hostUse{}
	}
	h.suites[suite][container] = &hostUse{names: []string{id, container}}
}

func (h *hostMemory) forgetHelpers(suite string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.suites, suite)
}

// helpers reads the memory use of each suite's helpers. The caller holds mu.
func (h *hostMemory) helpers() (all []model.HelpersUse) {
	for _, suite := range slices.Sorted(maps.Keys(h.suites)) {
		var sum units.Bytes
		for _, u := range h.suites[suite] {
			used, ok := groupMemory(u.group)
			if !ok {
				u.group, u.told = "", 0 // the container has ended, or was started again
				continue
			}
			u.told = steady(u.told, used, hostStep)
			sum += u.told
		}
		if sum > 0 {
			all = append(all, model.HelpersUse{Suite: suite, Used: sum})
		}
	}
	return all
}
