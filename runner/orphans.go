package runner

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"carma/containers"
	"carma/estimator/probe"
	"carma/mapper/model"
	"carma/runner/journal"
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
func (r *Runner) orphans(all []containers.Container) ([]orphan, error) {
	left, err := r.ignoredContainers()
	if err != nil {
		return nil, err
	}
	var found []orphan
	for _, c := range all {
		if slices.Contains(left, c.ID) {
			continue
		}
		task, err1 := strconv.ParseInt(c.Labels[LabelTask], 10, 64)
		attempt, err2 := strconv.Atoi(c.Labels[LabelAttempt])
		if err1 != nil || err2 != nil || c.Labels[probe.Label] != "" {
			continue // a probe needs no adoption, because it ends and is repeated
		}
		s := orphan{Container: c, task: model.TaskID(task), attempt: attempt}
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

// newerThanJournal returns why a container is newer than the journal, or "" if it is not.
func (r *Runner) newerThanJournal(s orphan) (string, error) {
	rec, err := r.Find(s.task.String())
	if isNotFound(err) {
		if s.task > r.compared {
			return fmt.Sprintf("the journal's last task is %d", r.compared), nil
		}
		return "", nil // the task was removed
	}
	if err != nil {
		return "", err
	}
	if rec.Nonce != "" && s.Labels[LabelNonce] != rec.Nonce {
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
func (r *Runner) checkNewer(all []containers.Container) ([]orphan, error) {
	found, err := r.orphans(all)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, nil
	}
	for _, s := range found { // so that no number is used twice
		r.nextID = max(r.nextID, s.task+1)
	}
	if accepted, err := r.lossAccepted(); err != nil || accepted {
		return found, err
	}
	refusal := &journal.Refusal{
		Err:  journal.ErrDamaged,
		What: "containers are newer than the journal in " + r.opt.DataDir + ": it is an older copy, or has lost its end",
		Fix:  journal.FixCommand(r.opt.DataDir),
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
