package query

import (
	"slices"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/record"
	"carma/runner/request"
)

// TestAsked checks that each listed task satisfies the conditions of the listing, and that the
// client's own filter gives the same result.
func TestAsked(t *testing.T) {
	at := func(minute int) units.Instant { return units.Instant(time.Duration(minute) * time.Minute) }
	recs := []*record.Record{
		{UID: 7, User: "ann", Name: "exp-1", Task: model.Task{Request: model.Request{ID: 1}, Phase: model.Succeeded, Submitted: at(1), Ended: at(10)}},
		{UID: 7, User: "ann", Name: "exp-2", Task: model.Task{Request: model.Request{ID: 2}, Phase: model.Failed, Submitted: at(2), Ended: at(20)}},
		{UID: 8, User: "bob", Name: "other", Group: "g", Task: model.Task{Request: model.Request{ID: 3}, Phase: model.Running, Submitted: at(3)}, Submit: api.Submit{Labels: map[string]string{"a": "b"}}},
	}
	r := New(Config{})
	ctx := request.WithLazyCaller(t.Context(), func() request.Caller { return request.Caller{UID: 7} })
	for _, row := range []struct {
		o    api.ListOptions
		want []int64
	}{
		{api.ListOptions{}, []int64{3}}, {api.ListOptions{All: true}, []int64{1, 2, 3}}, {api.ListOptions{All: true, Mine: true}, []int64{1, 2}},
		{api.ListOptions{All: true, Name: "exp-*"}, []int64{1, 2}}, {api.ListOptions{All: true, Phase: "failed,running"}, []int64{2, 3}},
		{api.ListOptions{All: true, Since: at(15).Time()}, []int64{2, 3}}, {api.ListOptions{All: true, Until: at(2).Time()}, []int64{1}},
		{api.ListOptions{All: true, Label: "a=b", Group: "g", User: "bob"}, []int64{3}}, {api.ListOptions{All: true, Label: "a=c"}, nil},
	} {
		fits, _, err := r.wanted(ctx, &row.o)
		if err != nil {
			t.Fatal(err)
		}
		var got, client []int64
		for _, rec := range recs {
			if fits(rec) {
				got = append(got, int64(rec.ID()))
			}
			if v := r.View(rec, InState{}); row.o.Fits(&v, 7) {
				client = append(client, v.ID)
			}
		}
		if !slices.Equal(got, row.want) || !slices.Equal(client, row.want) {
			t.Errorf("%+v: %v, and %v by the client; want %v", row.o, got, client, row.want)
		}
	}
	if _, _, err := r.wanted(t.Context(), &api.ListOptions{Mine: true}); err == nil {
		t.Error("tasks of a caller who is not known")
	}
	if _, _, err := r.wanted(ctx, &api.ListOptions{Name: "[x"}); err == nil {
		t.Error("a broken pattern")
	}
}

// TestPageOfWideTasks checks that a page of tasks with long commands has a bounded size.
func TestPageOfWideTasks(t *testing.T) {
	wide := make([]*record.Record, 10)
	for i := range wide {
		wide[i] = &record.Record{Submit: api.Submit{Command: []string{strings.Repeat("x", record.PageBytes/3)}}}
		wide[i].Task.ID = model.TaskID(10 - i)
	}
	if part, next := page(wide, 10); len(part) != 2 || next != 9 {
		t.Errorf("a page of %d wide tasks, next %d", len(part), next)
	}
}
