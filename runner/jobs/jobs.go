package jobs

import (
	"context"
	"strings"
	"time"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/api"
	"carma/runner/control"
	"carma/runner/loop"
	"carma/runner/record"
	"carma/runner/request"

	"github.com/rs/zerolog"
)

// readEvery is the time between two reads of the Jobs without a hint, readPause the
// shortest time between two reads.
const (
	readEvery = 10 * time.Second
	readPause = 100 * time.Millisecond
)

// Config holds the parts that a Reconciler works with.
type Config struct {
	Cluster containers.Jobber // nil if the driver has no Jobs
	Loop    *loop.Loop
	Records *record.Store
	Log     zerolog.Logger
	// Submit submits a Job as a task of its owner. It also returns warnings.
	Submit func(context.Context, request.Caller, api.Submit, containers.JobID) (*record.Record, []string, error)
}

// Reconciler compares Jobs with their tasks. Except for due, only the goroutine of Run uses its
// own fields.
type Reconciler struct {
	Config
	due    chan struct{}     // holds a token when a task of a Job has ended or waits for its Job
	said   map[string]string // the last refusal of each Job, by uid
	unread string            // the reason why the Jobs could not be read, or ""
}

// New returns a reconciler that has read no Jobs yet.
func New(c Config) *Reconciler {
	return &Reconciler{Config: c, due: make(chan struct{}, 1), said: map[string]string{}}
}

// Due requests a comparison of the Jobs if a task is a Job.
func (r *Reconciler) Due(id model.TaskID) {
	if rec, _ := r.Records.Get(id); rec == nil || rec.Job == nil {
		return
	}
	select {
	case r.due <- struct{}{}:
	default:
	}
}

// Run reconciles tasks and Jobs until ctx ends.
func (r *Reconciler) Run(ctx context.Context) {
	if r.Cluster == nil {
		return
	}
	news := r.Cluster.JobNews()
	for ctx.Err() == nil {
		r.reconcileAll(ctx)
		pause := time.After(readPause)
		select {
		case <-ctx.Done():
		case <-news:
		case <-r.due:
		case <-time.After(readEvery):
		}
		select {
		case <-ctx.Done():
		case <-pause:
		}
	}
}

// reconcileAll compares all Jobs with their tasks once.
func (r *Reconciler) reconcileAll(ctx context.Context) {
	all, err := r.Cluster.Jobs(ctx)
	if err != nil {
		if text := err.Error(); ctx.Err() == nil && text != r.unread {
			r.unread = text
			r.Log.Warn().Err(err).Msg("annotated Jobs cannot be read: new ones are not taken in")
		}
		return
	}
	r.unread = ""
	tasks := map[string]*record.Record{} // the newest task of each Job
	for _, rec := range r.Records.All() {
		if rec.Job == nil {
			continue
		}
		if old := tasks[rec.Job.UID]; old == nil || old.ID() < rec.ID() {
			tasks[rec.Job.UID] = rec
		}
	}
	said := map[string]string{}
	for i := range all {
		j := &all[i]
		if err := r.reconcile(ctx, j, tasks[j.UID]); err != nil && ctx.Err() == nil {
			r.refuseJob(ctx, j, err)
			said[j.UID] = r.said[j.UID]
		}
		delete(tasks, j.UID)
	}
	r.said = said
	for _, rec := range tasks {
		if !rec.Task.Phase.Finished() {
			r.logJob(ctx, rec, r.endWithJob(ctx, rec, "its Job was deleted", false))
		}
	}
}

// reconcile performs the due actions for a Job and its task, if it has one. An error says
// why the Job cannot be a task.
func (r *Reconciler) reconcile(ctx context.Context, j *containers.Job, rec *record.Record) error {
	over := jobOver(j)
	switch {
	case rec == nil, rec.Task.Phase == model.Succeeded, rec.Task.Phase.Finished() && (rec.Job.Over != "" || j.Ended == rec.Nonce):
		// A program that ended with 0 when its pod was deleted is a success of the task,
		// but its Job may not count it as one.
		if over == "" && j.Waits {
			return r.adoptJob(ctx, j)
		}
	case rec.Task.Phase.Finished() && over == "" || rec.Task.Phase.Finished() && j.Suspended:
		r.logJob(ctx, rec, r.Cluster.SuspendJob(ctx, j.JobID, rec.Nonce))
		r.logJob(ctx, rec, r.Cluster.TellJob(ctx, j.JobID, "CarmaSuspended", suspendedText(rec)))
	case rec.Task.Phase.Finished():
	case over != "":
		r.logJob(ctx, rec, r.endWithJob(ctx, rec, over, j.Failed != ""))
	case j.Waits:
		r.logJob(ctx, rec, r.continueJob(ctx, rec))
	}
	return nil
}

// jobOver returns the reason why a Job makes no pods now, or "" if it makes pods.
func jobOver(j *containers.Job) string {
	switch {
	case j.Failed != "":
		return "its Job has failed: " + j.Failed
	case j.Done:
		return "its Job has succeeded"
	case j.Suspended:
		return "its Job was suspended"
	}
	return ""
}

func (r *Reconciler) logJob(ctx context.Context, rec *record.Record, err error) {
	if err != nil && ctx.Err() == nil {
		r.Log.Warn().Err(err).Int64("task", int64(rec.ID())).Str("job", rec.Job.String()).Msg("a Job and its task are not as they should be; it is tried again")
	}
}

// endWithJob ends a task whose Job makes no more pods. A running attempt needs no stop: the
// cluster ends its pod, and the attempt's end is reported first.
func (r *Reconciler) endWithJob(ctx context.Context, rec *record.Record, why string, failed bool) error {
	id := rec.ID()
	return r.Loop.Do(ctx, &loop.Change{Fresh: true, Vital: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		t, open := r.Loop.State().Task(id)
		rec, _ := r.Records.Get(id)
		if !open || rec == nil || t.Alive() != nil {
			return nil, nil, nil
		}
		return []model.Event{model.Cancel{At: now, Task: id, Reason: why, Failed: failed}}, []*record.Record{rec.WithJobOver(why)}, nil
	}})
}

// continueJob lets a task be launched after its Job has made the next pod.
func (r *Reconciler) continueJob(ctx context.Context, rec *record.Record) error {
	id := rec.ID()
	if h := rec.Task.Hold; h == nil || h.Why != control.NextPod {
		return nil
	}
	return r.Loop.Do(ctx, &loop.Change{Fresh: true, Vital: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		t, open := r.Loop.State().Task(id)
		if !open || t.Hold == nil || t.Hold.Why != control.NextPod {
			return nil, nil, nil
		}
		return []model.Event{model.HoldChanged{At: now, Task: id, Why: "its Job has made a pod"}}, nil, nil
	}})
}

// suspendedText returns the reason of a suspension for the Job's owner.
func suspendedText(rec *record.Record) string {
	t := &rec.Task
	text := "task " + t.ID.String() + " is " + string(t.Phase)
	if why := words.Reason(t.Reason); why != "" {
		text += ": " + why
	}
	return text + "; resume the Job (suspend: false) to have it run as a new task"
}

// adoptJob makes a task of a Job.
func (r *Reconciler) adoptJob(ctx context.Context, j *containers.Job) error {
	if j.Cannot != "" {
		return request.Errorf(422, "%s", j.Cannot)
	}
	s, err := submitOfJob(j)
	if err != nil {
		return err
	}
	who := ownerOfJob(j)
	rec, lines, err := r.Submit(ctx, who, s, j.JobID)
	if err != nil {
		return inAnnotations(err)
	}
	if len(lines) > 0 {
		r.logJob(ctx, rec, r.Cluster.TellJob(ctx, j.JobID, "CarmaSubmitted", strings.Join(lines, "; ")))
	}
	r.Log.Info().Int64("task", int64(rec.ID())).Str("job", j.String()).Str("owner", j.Owner).Msg("an annotated Job is a task now")
	return nil
}

// refuseJob reports to a Job's owner once why the Job is no task.
func (r *Reconciler) refuseJob(ctx context.Context, j *containers.Job, err error) {
	text := err.Error()
	if r.said[j.UID] == text {
		return
	}
	if no, ok := err.(*request.Error); ok && no.Status < 500 {
		if tellErr := r.Cluster.TellJob(ctx, j.JobID, "CarmaRefused", text); tellErr != nil {
			r.Log.Warn().Err(tellErr).Str("job", j.String()).Msg("the owner of a Job cannot be told why it is refused")
			return
		}
	}
	r.said[j.UID] = text
	r.Log.Warn().Str("job", j.String()).Str("reason", text).Msg("an annotated Job is not taken in; it waits")
}
