package ledger

import (
	"testing"

	"carma/mapper/model"
)

// TestResolve compares the decision that takes effect in place of one of this program, for
// each kind, without recorded decisions, with the recorded one, with one about another
// task, and with one for another reason.
func TestResolve(t *testing.T) {
	idle, slot := model.Reason{Code: model.ReasonIdle}, model.Reason{Code: model.ReasonSlotUsed}
	finish := func(id model.TaskID, phase model.Phase) model.Finish {
		return model.Finish{Task: model.Task{Request: model.Request{ID: id}, Phase: phase}}
	}
	for name, c := range map[string]struct {
		mine     model.Decision
		recorded []model.Decision
		format   int
		want     model.Decision // or nil
	}{
		"the same stop":                 {model.Stop{Task: 1, Reason: idle}, []model.Decision{model.Stop{Task: 1, Attempt: 3, Reason: idle}}, 1, model.Stop{Task: 1, Attempt: 3, Reason: idle}},
		"a stop for another reason":     {model.Stop{Task: 1, Reason: idle}, []model.Decision{model.Stop{Task: 1, Reason: slot}}, 1, nil},
		"a stop of another task":        {model.Stop{Task: 1, Reason: idle}, []model.Decision{model.Stop{Task: 2, Reason: idle}}, 1, nil},
		"a suspension instead":          {model.Stop{Task: 1, Reason: idle}, []model.Decision{model.Suspend{Task: 1, Reason: idle}}, 1, nil},
		"the same suspension":           {model.Suspend{Task: 1, Reason: slot}, []model.Decision{model.Launch{Task: 1}, model.Suspend{Task: 1, Host: 7, Reason: slot}}, 1, model.Suspend{Task: 1, Host: 7, Reason: slot}},
		"a suspension, another reason":  {model.Suspend{Task: 1, Reason: slot}, []model.Decision{model.Suspend{Task: 1, Reason: idle}}, 1, nil},
		"a requeue instead of an end":   {finish(1, model.Failed), []model.Decision{model.Requeue{Task: 1, Need: 5}}, 1, model.Requeue{Task: 1, Need: 5}},
		"an end instead of a requeue":   {model.Requeue{Task: 1}, []model.Decision{finish(1, model.Cancelled)}, 1, finish(1, model.Cancelled)},
		"the end of another task":       {model.Requeue{Task: 1}, []model.Decision{finish(2, model.Cancelled)}, 1, nil},
		"the recorded resize":           {model.Resize{Task: 1}, []model.Decision{model.Resize{Task: 1, Attempt: 2}}, 1, model.Resize{Task: 1, Attempt: 2}},
		"no resize":                     {model.Resize{Task: 1}, nil, 1, nil},
		"grants are applied afterwards": {model.GrantChanged{Task: 1}, []model.Decision{model.GrantChanged{Task: 1, Attempt: 2}}, 1, nil},
		"grants were not recorded":      {model.GrantChanged{Task: 1}, nil, 0, model.GrantChanged{Task: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(model.Options{}, false)
			l.SetDecisionFormat(c.format)
			if got, ok := l.Resolve(c.mine); !ok || !model.SameDecision(got, c.mine) {
				t.Errorf("without records: %+v, %v", got, ok)
			}
			l.SetRecorded(c.recorded)
			got, ok := l.Resolve(c.mine)
			if ok != (c.want != nil) || ok && !model.SameDecision(got, c.want) {
				t.Errorf("%+v, %v; want %+v", got, ok, c.want)
			}
			l.ClearRecorded()
			if _, ok := l.Resolve(c.mine); !ok {
				t.Error("the records still count")
			}
		})
	}
}

// TestNextRecorded checks that a decision made during the event is not applied once more.
func TestNextRecorded(t *testing.T) {
	l := New(model.Options{}, false)
	l.SetRecorded([]model.Decision{model.Stop{Task: 1}, model.Launch{Task: 2}, model.Stop{Task: 3}})
	l.Decide(model.Stop{Task: 3})
	l.Decide(model.Stop{Task: 4})
	var left []model.Decision
	for d := l.NextRecorded(); d != nil; d = l.NextRecorded() {
		left = append(left, d)
	}
	if len(left) != 2 || Subject(left[0]) != 1 || Subject(left[1]) != 2 {
		t.Errorf("left: %+v", left)
	}
}
