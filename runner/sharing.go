package runner

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/loop"
	"carma/runner/mps"
	"carma/runner/record"
)

// sharing records how the tasks on each GPU share it. The mapper's predictions use it.
type sharing struct {
	mu sync.Mutex
	// broken is the reason why tasks are not clients of MPS although MPS is on, or empty if they
	// are clients. It is found while the daemon runs, and set under `auto` only. MPS is tried
	// again after retry, or never if retry is zero.
	broken string
	retry  time.Time
	// faults counts the tasks that ended by a fault of MPS before one ended well.
	faults int
	proven bool
	// apart are the attempts that are no clients although the mapper treats them as
	// clients, with their GPUs.
	apart map[gpu.AttemptKey][]model.GPUID
	// clients are the attempts that were started as clients of MPS.
	clients map[gpu.AttemptKey]*mpsClient
	told    map[model.GPUID]model.Sharing
}

const (
	// mpsAgain is the time after which a control daemon that did not start is
	// tried again.
	mpsAgain = 5 * time.Minute
	// mpsFaults is the number of tasks that end by a fault of MPS, with none that ended
	// well, after which MPS is assumed not to work on this machine.
	mpsFaults = 2
)

// why returns why tasks are no clients of MPS for now, or "" if they are.
func (s *sharing) why(now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != "" && !s.retry.IsZero() && now.After(s.retry) {
		return ""
	}
	return s.broken
}

// failed records the outcome of starting a control daemon; err is nil if it started.
func (s *sharing) failed(err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.broken, s.retry = err.Error(), now.Add(mpsAgain)
	} else if !s.retry.IsZero() {
		s.broken, s.retry = "", time.Time{}
	}
}

// ended records the end of a client. If the first clients all end by a fault of MPS, MPS
// is assumed not to work in containers here.
func (s *sharing) ended(class model.Class) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case class == model.ExitOK:
		s.proven = true
	case class == model.ExitMPSFault && !s.proven:
		if s.faults++; s.faults >= mpsFaults {
			s.broken, s.retry = "the first tasks under MPS ended by its faults", time.Time{}
		}
	}
}

// setApart records that an attempt shares its GPUs without MPS, although the mapper
// treats it as a client. Nil GPUs remove the record.
func (s *sharing) setApart(key gpu.AttemptKey, gpus []model.GPUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if gpus == nil {
		delete(s.apart, key)
		return
	}
	s.recordNoClient(key, gpus)
}

// recordNoClient does what setApart does. The caller holds the lock.
func (s *sharing) recordNoClient(key gpu.AttemptKey, gpus []model.GPUID) {
	if s.apart == nil {
		s.apart = map[gpu.AttemptKey][]model.GPUID{}
	}
	s.apart[key] = gpus
}

// sharingOf returns how tasks share a GPU now, and why not by MPS. why is "" if they use
// MPS or MPS is not configured.
func (r *Runner) sharingOf(d gpu.Device) (how model.Sharing, why string) {
	if d.Shares {
		return d.Sharing, ""
	}
	if s, ok := r.GPUs.(gpu.Sharer); ok {
		return s.Sharing(), ""
	}
	m := r.opt.MPS
	how, why = model.SharingTurns, r.opt.NoMPS
	if m != nil {
		how, why = m.on(d)
	}
	if d.Exclusive && how == model.SharingTurns {
		how = model.SharingAlone
	}
	if m == nil || why != "" {
		return how, why
	}
	if why := r.sharing.why(time.Now()); why != "" {
		return model.SharingTurns, why
	}
	r.sharing.mu.Lock()
	defer r.sharing.mu.Unlock()
	for _, gpus := range r.sharing.apart {
		if slices.Contains(gpus, model.GPUID(d.UUID)) {
			return model.SharingTurns, "a task there is no client of MPS"
		}
	}
	return how, ""
}

// on returns how tasks share a GPU if MPS starts, and why not by MPS.
func (m *MPS) on(d gpu.Device) (how model.Sharing, why string) {
	switch {
	case m.Auto && d.Parent != "":
		return model.SharingTurns, "it is a MIG instance"
	case m.Auto && d.Exclusive:
		return model.SharingAlone, "its compute mode is exclusive-process"
	case m.Groups.Shared:
		return model.SharingMPS, ""
	}
	return model.SharingUsers, ""
}

// sharedByMPS reports whether tasks that share a GPU in a way are clients of carma's MPS.
func (r *Runner) sharedByMPS(how model.Sharing) bool {
	return r.opt.MPS != nil && (how == model.SharingMPS || how == model.SharingUsers)
}

// gpusFound lists the GPUs, with how they are shared now.
func (r *Runner) gpusFound(now units.Instant) model.GPUsFound {
	found := model.GPUsFound{At: now}
	told := map[model.GPUID]model.Sharing{}
	for _, g := range r.gpus.Listed() {
		d := r.gpus.Devices()[g.ID]
		g.Sharing, _ = r.sharingOf(d)
		g.Suspend, g.SuspendAlone, _ = r.suspending.Kind(d, r.sharedByMPS(g.Sharing))
		told[g.ID] = g.Sharing
		found.GPUs = append(found.GPUs, g)
	}
	r.sharing.mu.Lock()
	defer r.sharing.mu.Unlock()
	r.sharing.told = told
	return found
}

// reportSharing reports to the mapper how the GPUs are shared, if that has changed. The loop
// must not call it.
func (r *Runner) reportSharing() {
	if r.opt.MPS == nil {
		return // without MPS the sharing does not change
	}
	changed := false
	for id, d := range r.gpus.Devices() {
		how, _ := r.sharingOf(d)
		r.sharing.mu.Lock()
		told, ok := r.sharing.told[id]
		r.sharing.mu.Unlock()
		changed = changed || ok && told != how
	}
	if changed {
		r.gpusChanged()
	}
}

// gpusChanged reports the GPUs, and how they are shared, to the mapper.
func (r *Runner) gpusChanged() {
	r.loop.Post(&loop.Change{Keep: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		return []model.Event{r.gpusFound(now)}, nil, nil
	}})
}

// joinMPS decides whether an attempt is a client of MPS, and starts the control daemon of
// its group, unless it runs. Under `auto` a task shares its GPUs without MPS if the
// control daemon does not start.
func (w *worker) joinMPS(ctx context.Context) error {
	defer w.reportSharing()
	defer w.recordNoClient()
	group := w.mpsGroup()
	if group == nil {
		return nil
	}
	m := w.opt.MPS
	if m.Auto && w.sharing.why(time.Now()) != "" {
		w.noMPS = true
		return nil
	}
	err := m.Groups.Ensure(ctx, group)
	if !m.Auto || ctx.Err() != nil {
		return err
	}
	if w.sharing.failed(err, time.Now()); err != nil {
		w.noMPS = true
		w.Log.Warn().Err(err).Str("group", group.Name).Msg("MPS does not start: tasks take turns")
	}
	return nil
}

// recallMPS finds out whether an attempt that an earlier daemon has started is a client.
// It is one if its control daemon runs.
func (w *worker) recallMPS(ctx context.Context) {
	if group := w.mpsGroup(); group != nil && errors.Is(group.Ping(ctx), mps.ErrNotRunning) {
		w.noMPS = true
	}
	w.recordNoClient()
	w.reportSharing()
}

// recordNoClient records an attempt that is no client although the mapper treats it as
// one. The mapper itself knows that tasks alone on their GPUs, and tasks after an MPS
// fault, are no clients.
func (w *worker) recordNoClient() {
	if w.opt.MPS == nil || w.launch.Alone || w.rec.Task.NextExclusive || w.mpsGroup() != nil || faultedByMPS(&w.rec.Task, w.launch.Attempt) {
		return
	}
	var gpus []model.GPUID
	for _, grant := range w.launch.Grants {
		gpus = append(gpus, grant.GPU)
	}
	w.sharing.setApart(w.key(), gpus)
}

// leaveMPS handles the end of an attempt.
func (w *worker) leaveMPS(ctx context.Context, class model.Class) {
	if w.opt.MPS == nil || ctx.Err() != nil {
		return
	}
	if w.opt.MPS.Auto && w.mpsGroup() != nil {
		w.sharing.ended(class)
	}
	w.sharing.setApart(w.key(), nil)
	w.reportSharing()
}

func (w *worker) key() gpu.AttemptKey {
	return gpu.AttemptKey{Task: w.launch.Task, Attempt: w.launch.Attempt}
}

// mayServe reports whether the daemon may run a control daemon as a user.
func mayServe(uid int) bool { return os.Geteuid() == 0 || os.Geteuid() == uid }
