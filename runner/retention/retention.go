// Package retention removes finished tasks that are too old or too many, and output whose
// time has expired. It owns the rule which task goes first: tasks that ended first, of the
// user with the most tasks; never a task that an unfinished task waits for, or of a group
// that is open.
package retention

import (
	"context"
	"maps"
	"slices"
	"time"

	"carma/internal/failpoint"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/clock"
	"carma/runner/journal"
	"carma/runner/record"
	"carma/runner/tasklog"

	"github.com/rs/zerolog"
)

// Keep bounds the finished tasks that are kept. 0 means no limit.
type Keep struct {
	Tasks     int           // number
	TasksFor  time.Duration // time after their end, in the daemon's time
	OutputFor time.Duration // the same for their output
}

const (
	// houseEvery is the time between two removals of old tasks and output.
	houseEvery = time.Minute
	// houseStep is the number of tasks removed at once. housePause is the time until the
	// next removal, so that submissions do not wait for all removals.
	houseStep  = 100
	housePause = 50 * time.Millisecond
)

// Deps holds what a remover works on.
type Deps struct {
	Journal *journal.Journal
	Records *record.Store
	Logs    *tasklog.Store
	Clock   *clock.Clock
	Log     zerolog.Logger
	// Keep returns the present limits.
	Keep func() Keep
	// Look calls a func that may read the state.
	Look func(context.Context, func(*mapper.State)) error
	// Remove removes finished tasks, with their output.
	Remove func(ctx context.Context, by string, ids ...model.TaskID) error
}

// Remover removes finished tasks and output.
type Remover struct{ Deps }

// New returns a remover. Call [Remover.CountOutput] and then [Remover.Run].
func New(deps Deps) *Remover { return &Remover{deps} }

// Run removes expired tasks and output until ctx ends. It calls also after each round.
func (r *Remover) Run(ctx context.Context, also func()) {
	gone := int64(0) // output of tasks that ended before this instant has expired
	for {
		for {
			n, err := r.RemoveSome(ctx)
			if err != nil && ctx.Err() == nil {
				r.Log.Warn().Err(err).Msg("old tasks could not be removed")
			}
			if err != nil || n == 0 || !pause(ctx, housePause) {
				break
			}
		}
		gone = r.expireOutput(ctx, gone)
		also()
		if !pause(ctx, houseEvery) {
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// CountOutput gives the store the user of each task with output on disk. Until then only
// the disk's limit counts that output.
func (r *Remover) CountOutput(ctx context.Context) {
	ids, err := r.Logs.Tasks()
	if err != nil {
		r.Log.Warn().Err(err).Msg("the output on disk cannot be counted")
	}
	slices.Sort(ids)
	for len(ids) > 0 && pause(ctx, housePause) {
		step := ids[:min(houseStep*5, len(ids))]
		ids = ids[len(step):]
		tasks, err := r.Journal.Outlines(step[0], step[len(step)-1])
		if err != nil {
			r.Log.Warn().Err(err).Msg("the output on disk cannot be counted")
			return
		}
		for _, t := range tasks {
			if _, ok := slices.BinarySearch(step, t.ID); !ok {
				continue
			}
			r.Logs.Own(t.ID, t.User)
			if t.Finished {
				r.Logs.Done(t.ID, t.Ended)
			}
		}
	}
}

// RemoveSome removes some of the finished tasks that are too old or too many,
// and returns how many.
func (r *Remover) RemoveSome(ctx context.Context) (int, error) {
	needed, err := r.neededTasks(ctx)
	if err != nil {
		return 0, err
	}
	if r.Keep().TasksFor > 0 {
		before := int64(r.Clock.Now().Add(-r.Keep().TasksFor))
		n, err := r.removeOldest(ctx, "", before, houseStep, needed)
		if n > 0 || err != nil {
			return n, err
		}
	}
	if r.Keep().Tasks == 0 {
		return 0, nil
	}
	users, err := r.Journal.FinishedByUser()
	if err != nil {
		return 0, err
	}
	most, total := "", 0
	for user, n := range users {
		total += n
		if n > users[most] || n == users[most] && user < most {
			most = user
		}
	}
	if total <= r.Keep().Tasks {
		return 0, nil
	}
	above := users[most] - share(users, r.Keep().Tasks)
	return r.removeOldest(ctx, most, 0, min(houseStep, total-r.Keep().Tasks, max(above, 1)), needed)
}

// removeOldest removes up to n finished tasks of a user, or of anybody if user is empty,
// except needed tasks. The tasks that ended first go first. If before is not 0, only tasks
// that ended before that instant are removed.
func (r *Remover) removeOldest(ctx context.Context, user string, before int64, n int, needed map[int64]bool) (int, error) {
	var ids []model.TaskID
	for limit := n + len(needed); len(ids) == 0; limit *= 4 { // tasks of open groups stay, and may be many
		old, err := r.Journal.Oldest(journal.Oldest{User: user, Before: before, Limit: limit})
		if err != nil {
			return 0, err
		}
		for _, t := range old {
			if len(ids) < n && !needed[t.ID] && (t.Group == "" || !r.Records.OpenGroup(t.Group)) {
				ids = append(ids, model.TaskID(t.ID))
			}
		}
		if len(old) < limit {
			break
		}
	}
	if len(ids) == 0 {
		return 0, nil
	}
	failpoint.Hit("prune-begins")
	if err := r.Remove(ctx, "carma", ids...); err != nil {
		return 0, err
	}
	failpoint.Hit("prune-stored")
	r.Log.Info().Int("tasks", len(ids)).Int64("first", int64(ids[0])).Msg("removed old finished tasks, as keep-tasks says")
	return len(ids), nil
}

// neededTasks returns the tasks that an unfinished task depends on.
func (r *Remover) neededTasks(ctx context.Context) (map[int64]bool, error) {
	needed := map[int64]bool{}
	err := r.Look(ctx, func(s *mapper.State) {
		for _, t := range s.Tasks() {
			for _, d := range t.After {
				needed[int64(d.Task)] = true
			}
		}
	})
	return needed, err
}

// expireOutput replaces output by notes, for tasks that ended after gone and more than
// Keep.OutputFor ago. It returns the instant up to which output is replaced.
func (r *Remover) expireOutput(ctx context.Context, gone int64) int64 {
	if r.Keep().OutputFor == 0 {
		return gone
	}
	before := int64(r.Clock.Now().Add(-r.Keep().OutputFor))
	why := "output is kept for " + r.Keep().OutputFor.String() + " after a task's end"
	for {
		old, err := r.Journal.Oldest(journal.Oldest{From: gone, Before: before, Limit: houseStep})
		if err != nil || len(old) == 0 {
			return gone
		}
		for _, t := range old {
			r.Logs.Expire(t.ID, why)
			gone = max(gone, t.Ended)
		}
		if len(old) < houseStep || !pause(ctx, housePause) {
			return gone
		}
		gone++ // otherwise, if houseStep tasks ended at the same instant, the loop would not get past them
	}
}

// share returns the number of tasks that each user may keep so that total tasks are kept,
// rounded up.
func share(users map[string]int, total int) int {
	counts := slices.Sorted(maps.Values(users))
	for i, n := range counts {
		users := len(counts) - i
		if fair := total / users; n > fair {
			return (total + users - 1) / users
		}
		total -= n
	}
	return total
}
