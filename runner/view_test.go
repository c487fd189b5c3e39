package runner

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
	r := &Runner{}
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
			if v := r.view(rec, queueView{}); row.o.Fits(&v, 7) {
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

// TestWhereAnEstimateComesFrom: if the peak of earlier runs is allocated, the detail says so
// and precedes the estimator's sentence.
func TestWhereAnEstimateComesFrom(t *testing.T) {
	const asked = "workload resnet50: 6.9 GiB measured, 7.0 GiB booked"
	const unknown = "nothing is known about its memory; --mem or --est-model lets it share at once"
	for alone, want := range map[bool]string{false: unknown, true: "nothing is known about its memory; it asked for its GPUs alone"} {
		if got := estimateDetail(model.Estimate{WholeGPU: true}, unknown, alone); got != want {
			t.Errorf("exclusive %v: %q, want %q", alone, got, want)
		}
	}
	for _, c := range []struct {
		e    model.Estimate
		want string
	}{
		{model.Estimate{Memory: 7 * units.GiB, Method: "catalogue"}, asked},
		{model.Estimate{Memory: 9 * units.GiB, Method: model.FromHistory}, "9.0 GiB booked, a little above what earlier runs"},
		{model.Estimate{WholeGPU: true, Method: model.FromHistory}, "whole GPUs; when it was submitted: " + asked},
	} {
		if got := estimateDetail(c.e, asked, false); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.e, got, c.want)
		}
	}
}
