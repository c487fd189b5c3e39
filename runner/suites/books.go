package suites

import (
	"context"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/api"
	"carma/runner/helpers"
	"carma/runner/loop"
	"carma/runner/machine"
	"carma/runner/record"
	"carma/runner/request"
)

// Books allocates the machine's memory and processors to helpers, by events of the loop.
type Books struct {
	Loop   *loop.Loop
	Memory *machine.Memory
	Bounds func() machine.Bounds // in force
}

// Reserved returns what a helper has of the machine unless it takes more.
func (b Books) Reserved(s *api.Submit) helpers.Share { return b.Bounds().Reserved(s) }

// Book sets what the helpers of a suite have of the machine.
func (b Books) Book(ctx context.Context, suite string, share helpers.Share, how helpers.How) error {
	ev := model.HelpersBooked{Suite: suite, Memory: units.Bytes(share.HostMem), CPUs: machine.Milli(share.CPUs)}
	return b.Loop.Do(ctx, &loop.Change{Fresh: true, Vital: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		if how != helpers.Must {
			if err := noPlace(b.Loop.State().HelpersFit(ev.Node, suite, ev.Memory, ev.CPUs), how); err != nil {
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
		return request.Errorf(422, "its helpers would have %g processors booked, and all tasks and helpers together may have %g (all-cpus); write less as cpus, or as reservations", machine.Processors(int64(no.More)), machine.Processors(int64(no.Limit)))
	case how == helpers.Look:
		return nil
	}
	return &helpers.FullError{Text: words.Reason(no)}
}

// booked returns the resources that the state allocates to a suite, without the measured
// use. Only the loop calls it.
func (b Books) booked(suite string) model.HelpersShare {
	for _, h := range b.Loop.State().Hosts() {
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
func (b Books) suites() (names []string) {
	for _, h := range b.Loop.State().Hosts() {
		for _, o := range h.Helpers {
			names = append(names, o.Suite)
		}
	}
	return names
}

// Follow measures the container of a helper.
func (b Books) Follow(suite, container, id string) {
	b.Memory.FollowHelper(suite, container, id)
}

// Forget stops measuring the helpers of a suite.
func (b Books) Forget(suite string) { b.Memory.ForgetHelpers(suite) }
