package query

import (
	"context"
	"slices"
	"time"

	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/predict"
	"carma/runner/record"
	"carma/runner/waitreason"
)

// InState holds the data of a task that only the state has: the place and the reason of
// a pending task, or the speed of a running one.
type InState struct {
	Position int // in the queue; 0 without one
	waits    string
	code     model.ReasonCode
	going    predict.SpeedView
	runs     bool
}

// States asks the state about the unfinished ones of some records.
func (r *Tasks) States(ctx context.Context, recs []*record.Record) (map[model.TaskID]InState, error) {
	var waiting, placed []model.TaskID
	for _, rec := range recs {
		switch p := rec.Task.Phase; {
		case p.Waits():
			waiting = append(waiting, rec.ID())
		case p.Placed() && p != model.Launching:
			placed = append(placed, rec.ID())
		}
	}
	views := map[model.TaskID]InState{}
	if len(waiting)+len(placed) == 0 {
		return views, nil
	}
	slices.Sort(waiting)
	err := r.c.Loop.Look(ctx, func(s *mapper.State) {
		for _, id := range placed {
			views[id] = Placed(s, id)
		}
		explained := 0
		for _, id := range waiting {
			v := InState{Position: s.Position(id)}
			if explained < waitreason.AtMost || v.Position == 0 { // the reason of a held task costs nothing
				if x := r.c.Reasons.Of(s, id, time.Now()); x.Known {
					v.waits, v.code = x.Text, x.Code
				}
				explained++
			}
			views[id] = v
		}
	})
	return views, err
}

// Placed returns what the state has of a task with GPUs. It must be called in the loop.
func Placed(s *mapper.State, id model.TaskID) InState {
	going, runs := s.Speed(id)
	return InState{going: going, runs: runs}
}
