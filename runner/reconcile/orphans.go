package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"carma/containers"
	"carma/estimator/probe"
	"carma/mapper/model"
	"carma/runner/journal"
	"carma/runner/label"
	"carma/runner/record"
)

// orphan is a container of this data folder that the journal does not know. It is newer than
// the journal, because the end of the journal was lost.
type orphan struct {
	containers.Container
	task    model.TaskID
	attempt int
	why     string
}

// orphans returns the orphans: containers of this folder that are newer than the journal.
// Once the daemon runs, only the loop calls it.
func (r *Reconciler) orphans(all []containers.Container) ([]orphan, error) {
	left, err := r.ignoredContainers()
	if err != nil {
		return nil, err
	}
	var found []orphan
	for _, c := range all {
		if slices.Contains(left, c.ID) {
			continue
		}
		task, attempt, ok := label.ParseAttempt(c.Labels)
		if !ok || c.Labels[probe.Label] != "" {
			continue // a probe needs no adoption, because it ends and is repeated
		}
		s := orphan{Container: c, task: task, attempt: attempt}
		if s.why, err = r.newerThanJournal(s); err != nil {
			return nil, err
		}
		if s.why != "" {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b orphan) int {
		return cmp.Or(cmp.Compare(a.task, b.task), cmp.Compare(a.attempt, b.attempt))
	})
	return found, nil
}

// find returns a task's record from memory or the journal, or [journal.ErrNotFound].
func (r *Reconciler) find(id model.TaskID) (*record.Record, error) {
	if rec, _ := r.records.Get(id); rec != nil {
		return rec, nil
	}
	row, err := r.journal.Task(int64(id))
	if err != nil {
		return nil, err
	}
	return record.Decode(row)
}

// newerThanJournal returns why a container is newer than the journal, or "" if it is not.
func (r *Reconciler) newerThanJournal(s orphan) (string, error) {
	rec, err := r.find(s.task)
	if errors.Is(err, journal.ErrNotFound) {
		if s.task > r.compared {
			return fmt.Sprintf("the journal's last task is %d", r.compared), nil
		}
		return "", nil // the task was removed
	}
	if err != nil {
		return "", err
	}
	if rec.Nonce != "" && s.Labels[label.Nonce] != rec.Nonce {
		return "it belongs to another task of this number", nil
	}
	last := 0
	if a := rec.Task.Last(); a != nil {
		last = a.N
	}
	if t, ok := r.loop.State().Task(s.task); ok && t.Last() != nil {
		last = max(last, t.Last().N)
	}
	if s.attempt > last {
		return fmt.Sprintf("the journal knows %d attempts of task %d", last, s.task), nil
	}
	return "", nil
}

// checkNewer refuses a journal that is older than some containers. If the loss was
// accepted, it returns these containers for adoption.
func (r *Reconciler) checkNewer(all []containers.Container) ([]orphan, error) {
	found, err := r.orphans(all)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, nil
	}
	for _, s := range found {
		r.known(s.task)
	}
	if accepted, err := r.lossAccepted(); err != nil || accepted {
		return found, err
	}
	refusal := &journal.Refusal{
		Err:  journal.ErrDamaged,
		What: "containers are newer than the journal in " + r.folder + ": it is an older copy, or has lost its end",
		Fix:  journal.FixCommand(r.folder),
	}
	const most = 5
	for i, s := range found {
		if i == most {
			refusal.Facts = append(refusal.Facts, fmt.Sprintf("and %d more", len(found)-most))
			break
		}
		refusal.Facts = append(refusal.Facts, fmt.Sprintf("%s (%s): task %d, attempt %d; %s", s.Name, s.State, s.task, s.attempt, s.why))
	}
	refusal.Facts = append(refusal.Facts, "none of them was touched; if you have a newer copy of the folder, put it back with: carma journal restore")
	return nil, refusal
}
