package runner

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/engine"
	"carma/runner/journal"
	"carma/runner/loop"
	"carma/runner/record"
)

// reconciler records whether the containers have been compared with the journal since the
// start. Until then nothing is launched: a container that the journal does not know may
// have the number of the new task.
type reconciler struct {
	mu   sync.Mutex
	why  string        // why nothing is launched, or "" after the comparison
	bad  bool          // containers are newer than the journal
	over chan struct{} // closed after the comparison
}

func newReconciler() *reconciler {
	return &reconciler{over: make(chan struct{}), why: "the containers have not been compared with the journal yet"}
}

func (l *reconciler) reason() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// code returns the code of the trouble for the reason.
func (l *reconciler) code() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bad {
		return "newer-containers"
	}
	return "not-compared"
}

func (l *reconciler) refuse(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.why, l.bad = why, true
}

func (l *reconciler) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.why = ""
	close(l.over)
}

// lookTime bounds the comparison at a start, because the daemon must start even if the
// engine does not answer.
const lookTime = 10 * time.Second

// reconcileAtStart compares the containers with the journal before the daemon runs. If
// the engine does not answer, [Runner.reconcileLater] compares them later.
func (r *Runner) reconcileAtStart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	all, err := r.ownContainers(ctx)
	if err != nil {
		r.Log.Warn().Err(err).Msg("the containers cannot be listed: nothing is launched until they have been compared with the journal")
		return r.loop.Note(comparedKey, strconv.AppendInt(nil, int64(r.compared), 10))
	}
	found, err := r.checkNewer(all)
	if err != nil {
		return err
	}
	return r.endReconciling(found)
}

// comparedKey is the key in the journal's meta of [Runner.compared]. The key exists until
// the comparison has been made.
const comparedKey = "compared"

// findCompared sets r.compared, the number of the last task that the journal
// knew when it was opened. A container of a later task is newer than the
// journal. Tasks that were submitted since do not count until the comparison is
// made.
func (r *Runner) findCompared() error {
	r.compared = r.loop.State().LastID()
	b, err := r.Journal.Meta(comparedKey)
	if errors.Is(err, journal.ErrNotFound) {
		return nil
	}
	if err == nil {
		var n int64
		n, err = strconv.ParseInt(string(b), 10, 64)
		r.compared = model.TaskID(n)
	}
	return err
}

// endReconciling adopts the orphans that were found, and allows launches.
func (r *Runner) endReconciling(found []orphan) error {
	if err := r.acceptLoss(found); err != nil {
		return err
	}
	if _, err := r.Journal.Meta(comparedKey); err == nil {
		if err := r.Journal.DropMeta(comparedKey); err != nil {
			return err
		}
	} else if !errors.Is(err, journal.ErrNotFound) {
		return err
	}
	r.lookout.end()
	return nil
}

func (r *Runner) ownContainers(ctx context.Context) ([]containers.Container, error) {
	return r.Driver.List(ctx, map[string]string{LabelInstance: r.instance})
}

// reconcileLater makes a comparison that was not possible at the start, as soon as the engine
// answers. If containers are newer than the journal then, running tasks continue, and
// nothing is launched until a restart after a repair.
func (r *Runner) reconcileLater(ctx context.Context) {
	if r.lookout.reason() == "" {
		return
	}
	err := r.engine.Insist(ctx, func() error {
		all, err := r.ownContainers(ctx)
		if err != nil {
			return err
		}
		if lookErr := r.loop.Look(ctx, func(*mapper.State) { err = r.compare(all) }); lookErr != nil {
			return lookErr
		}
		return err
	})
	if err == nil {
		r.loop.Post(r.engineNow())
	}
}

// compare is the part of reconcileLater that runs in the loop. After an error, the caller
// tries again.
func (r *Runner) compare(all []containers.Container) error {
	found, err := r.checkNewer(all)
	if refusal, ok := errors.AsType[*journal.Refusal](err); ok {
		said := refusal.What + " (" + strings.Join(refusal.Facts, "; ") + ")"
		r.lookout.refuse(said + engine.ToFix + "stop the daemon, then " + refusal.Fix)
		return nil
	}
	if err == nil {
		err = r.endReconciling(found)
	}
	if err == nil {
		r.resumeWorkers()
	}
	return err
}

// launchable returns whether containers can and may be started, and why not.
func (r *Runner) launchable() (up bool, why string) {
	if up, why = r.engine.Status(); !up {
		return false, why
	}
	why = r.lookout.reason()
	return why == "", why
}

// engineNow returns a change that reports the engine's state at the time when the loop
// applies it.
func (r *Runner) engineNow() *loop.Change {
	return &loop.Change{Keep: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		if r.draining.Load() {
			return nil, nil, nil // nothing is started anyway
		}
		up, why := r.launchable()
		return []model.Event{model.EngineChanged{At: now, Up: up, Reason: why}}, nil, nil
	}}
}

// mayCreate waits until no other container can have the attempt's number. It
// reports false if the attempt was stopped before.
func (w *worker) mayCreate(ctx context.Context) (bool, error) {
	select {
	case <-w.lookout.over:
		return true, nil
	case <-w.stop.asked:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
