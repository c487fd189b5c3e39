package query

import (
	"context"
	"time"

	"carma/mapper/model"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/energy"
	"carma/runner/inventory"
	"carma/runner/loop"
	"carma/runner/monitor"
	"carma/runner/ports"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
	"carma/runner/throughput"
	"carma/runner/waitreason"

	"golang.org/x/sync/semaphore"
)

// Config has the parts that Tasks works with.
type Config struct {
	Loop      *loop.Loop
	Find      *record.Finder
	Authz     *access.Authorizer
	GPUs      *inventory.GPUs
	Monitor   *monitor.Monitor
	Energy    *energy.Accounts
	Followers *throughput.Followers
	Ports     *ports.Book
	Clock     *clock.Clock
	// Reasons holds the reasons why tasks wait. Only the loop uses it.
	Reasons *waitreason.Cache
	// Instance labels the containers. SampleEvery is the time between samples of GPUs.
	Instance    string
	SampleEvery time.Duration
	// Probing describes what the probe of a task does now, or returns "" without a probe.
	Probing func(model.TaskID) string
	// Undelivered returns the messages about a task that a user has not received.
	Undelivered func(uid int, task int64) []string
}

// Tasks answers questions about tasks. Safe for concurrent use.
type Tasks struct {
	c         Config
	expected  expectations
	timelines timelines
}

// New returns Tasks that read from the parts in c.
func New(c Config) *Tasks {
	return &Tasks{c: c, timelines: timelines{turn: semaphore.NewWeighted(1)}}
}

// Task returns the parts of a task that the caller may see. The values of its environment are
// shown or hidden as in a listing.
func (r *Tasks) Task(ctx context.Context, ref string) (api.Task, error) {
	return r.taskAs(ctx, ref, rights.ListEnvironment)
}

// Inspect returns a task, with the values of its environment if the caller may see them.
func (r *Tasks) Inspect(ctx context.Context, ref string) (api.Task, error) {
	rec, err := r.c.Find.Find(ref)
	if err != nil {
		return api.Task{}, err
	}
	if who, ok := request.CallerFrom(ctx); ok && len(rec.Submit.Env) > 0 && r.c.Authz.May(ctx, rights.Environment, rec) {
		if err := r.c.Authz.Authorize(who, rights.Environment, rec, ""); err != nil {
			return api.Task{}, err
		}
	}
	return r.taskAs(ctx, rec.ID().String(), rights.Environment)
}

func (r *Tasks) taskAs(ctx context.Context, ref string, environment rights.Action) (api.Task, error) {
	rec, err := r.c.Find.Find(ref)
	if err != nil {
		return api.Task{}, err
	}
	views, err := r.States(ctx, []*record.Record{rec})
	if err != nil {
		return api.Task{}, err
	}
	v := r.withCurves(rec, r.Present(ctx, rec, views[rec.ID()], environment))
	if r.c.Authz.May(ctx, rights.Undelivered, rec) { // a task that is open to all does not show its owner's channels
		v.Undelivered = r.c.Undelivered(rec.UID, int64(rec.ID()))
	}
	return v, nil
}

// Show returns a task as the caller may see it in a listing.
func (r *Tasks) Show(ctx context.Context, rec *record.Record) (api.Task, error) {
	states, err := r.States(ctx, []*record.Record{rec})
	if err != nil {
		return api.Task{}, err
	}
	return r.Present(ctx, rec, states[rec.ID()], rights.ListEnvironment), nil
}

// Present returns a task as the caller may see it. environment is the right to see the
// values of its environment in this answer.
func (r *Tasks) Present(ctx context.Context, rec *record.Record, in InState, environment rights.Action) api.Task {
	v := r.View(r.c.Authz.Shown(ctx, rec, environment), in)
	if !r.c.Authz.May(ctx, rights.Progress, rec) {
		v.Progress, v.Params, v.Trainable = WithoutOutput(v.Progress), 0, 0
	}
	return v
}
