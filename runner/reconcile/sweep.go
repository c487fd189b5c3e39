package reconcile

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"carma/containers"
	"carma/estimator/probe"
	"carma/internal/failpoint"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/journal"
	"carma/runner/label"
)

// Use answers what the daemon does with a container that may be left over.
type Use interface {
	// InUse reports whether a probe or a trial of this daemon uses the container.
	InUse(c containers.Container) bool
	// Release thaws the container and clears its limits, before it is removed.
	Release(ctx context.Context, c containers.Container)
}

// Sweep removes containers of this daemon that belong to ended attempts, because an
// earlier daemon was killed before it could remove them. placed are the attempts that had
// not ended when placed was made. Newer containers and other owners' containers are left
// alone, see [Reconciler.refuseLeftover]. first is the first number that this daemon gives.
//
// Sweep waits until the containers have been compared with the journal. Until then an
// orphan that will be adopted looks like a container of an ended attempt.
func (r *Reconciler) Sweep(ctx context.Context, placed map[model.TaskID]int, first model.TaskID, use Use) {
	select {
	case <-r.over:
	case <-ctx.Done():
		return
	}
	var found []containers.Container
	_, err := r.engine.Retry(ctx, func() (err error) {
		found, err = r.driver.List(ctx, map[string]string{label.Instance: r.instance})
		return err
	})
	if err != nil {
		return
	}
	left, err := r.ignoredContainers()
	if err != nil {
		r.log.Error().Err(err).Msg("left-over containers stay: the list of those to leave alone cannot be read")
		return
	}
	for _, c := range found {
		if slices.Contains(left, c.ID) {
			continue
		}
		task, err := strconv.ParseInt(c.Labels[label.Task], 10, 64)
		if c.Labels[probe.Label] != "" && err == nil && !use.InUse(c) {
			_, _ = r.engine.Retry(ctx, func() error { return r.driver.Remove(ctx, c.ID) }) // if this fails, the probe still ends
			continue
		}
		id, attempt, ok := label.ParseAttempt(c.Labels)
		if !ok {
			continue
		}
		if id == 0 {
			if !use.InUse(c) {
				r.remove(ctx, c, use, "the container of a trial could not be removed")
			}
			continue
		}
		if n, ok := placed[id]; ok && attempt >= n {
			continue
		}
		if !r.ended(ctx, id, attempt) {
			continue
		}
		if why := r.refuseLeftover(id, c, first); why != "" {
			r.log.Error().Int64("task", task).Str("container", c.Name).Str("state", string(c.State)).Msg("a container with this daemon's label is left alone: " + why)
			continue
		}
		if c.State == containers.StateRunning {
			r.log.Warn().Int64("task", task).Str("container", c.Name).Msg("a container of an attempt that is over still runs; removing it")
		}
		failpoint.Hit("sweep-removes")
		r.remove(ctx, c, use, "a left-over container could not be removed")
	}
}

func (r *Reconciler) remove(ctx context.Context, c containers.Container, use Use, failed string) {
	use.Release(ctx, c)
	if _, err := r.engine.Retry(ctx, func() error { return r.driver.Remove(ctx, c.ID) }); err != nil && ctx.Err() == nil {
		r.log.Warn().Err(err).Str("container", c.Name).Msg(failed)
	}
}

// ended reports whether an attempt has ended according to the state.
func (r *Reconciler) ended(ctx context.Context, task model.TaskID, attempt int) bool {
	over := false
	err := r.loop.Look(ctx, func(s *mapper.State) {
		t, ok := s.Task(task)
		n := 0
		if ok && t.Last() != nil {
			n = t.Last().N
		}
		over = !ok || n > attempt || n == attempt && t.Alive() == nil
	})
	return err == nil && over
}

// refuseLeftover returns why a container of an attempt that is over must be left alone, or "" if
// it belongs to that attempt and may be removed. first is the first number that this daemon
// gives.
func (r *Reconciler) refuseLeftover(task model.TaskID, c containers.Container, first model.TaskID) string {
	rec, err := r.find(task)
	missing := errors.Is(err, journal.ErrNotFound)
	switch {
	case missing && task >= first:
		return "its task is newer than this journal, which seems to be an older copy"
	case missing && c.State == containers.StateRunning:
		return "it runs, and its task was removed"
	case missing:
		return ""
	case err != nil:
		return "its task cannot be looked up: " + err.Error()
	}
	if nonce := c.Labels[label.Nonce]; rec.Nonce != "" && nonce != rec.Nonce {
		return "it belongs to another task of this number, of another copy of the journal"
	}
	return ""
}
