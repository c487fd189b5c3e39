package runner

import (
	"context"
	"slices"

	"carma/failpoint"
	"carma/mapper"
	"carma/runner/api"
)

// Stop asks for a task to end.
func (r *Runner) Stop(ctx context.Context, who Caller, ref string, s api.StopRequest) (*Record, error) {
	rec, err := r.Find(ref)
	if err != nil {
		return nil, err
	}
	if err := r.mayChange(who, rec); err != nil {
		return nil, err
	}
	if s.Grace > 0 {
		r.graces.Store(rec.ID(), s.Grace)
	}
	reason := s.Reason
	if reason == "" {
		reason = "stopped by " + who.Name
	}
	err = r.do(ctx, &change{events: func(now mapper.Instant) ([]mapper.Event, []*Record, error) {
		if t, ok := r.state.Task(rec.ID()); !ok || t.Phase == mapper.Stopping {
			return nil, nil, nil // finished meanwhile, or asked for already
		}
		return []mapper.Event{mapper.Cancel{At: now, Task: rec.ID(), Reason: reason}}, nil, nil
	}})
	if err != nil {
		return nil, err
	}
	failpoint.Hit("stop-stored")
	return r.Find(ref)
}

func (r *Runner) mayChange(who Caller, rec *Record) error {
	if who.UID == 0 || who.UID == rec.UID || (r.opt.AdminGroup != "" && slices.Contains(who.Groups, r.opt.AdminGroup)) {
		return nil
	}
	return refusef(403, "task %d belongs to %s; you are %s", rec.ID(), rec.User, who.Name)
}
