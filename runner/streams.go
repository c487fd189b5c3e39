package runner

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/query"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
	"carma/runner/sse"
	"carma/runner/tasklog"

	"github.com/danielgtaylor/huma/v2"
)

func (r *Runner) taskLogs(ctx context.Context, in *api.LogsOfTask) (*huma.StreamResponse, error) {
	rec, err := r.find.Find(in.Ref)
	if err == nil {
		err = r.authz.AuthorizeReading(ctx, rec)
	}
	if err == nil {
		err = hasAttempt(rec, in.Attempt, in.Follow)
	}
	if err != nil {
		return nil, err
	}
	return sse.Stream(func(ctx context.Context, s *sse.Sender) error { return r.streamLogs(ctx, s, rec, in.LogOptions) }), nil
}

func (r *Runner) taskStates(_ context.Context, in *api.TaskPath) (*huma.StreamResponse, error) {
	rec, err := r.find.Find(in.Ref)
	if err != nil {
		return nil, err
	}
	return sse.Stream(func(ctx context.Context, s *sse.Sender) error { return r.watchTask(ctx, s, rec) }), nil
}

// watchTask sends the present state of a task and every later state until the last. The
// reason why a task waits changes without an event, so it is checked once a second.
func (r *Runner) watchTask(ctx context.Context, s *sse.Sender, rec *record.Record) error {
	var last []byte
	for {
		newest, changed := r.records.Get(rec.ID())
		if newest != nil {
			rec = newest
		}
		v, err := r.query.Show(ctx, rec)
		if err != nil {
			return err
		}
		if b, err := json.Marshal(v); err == nil && !bytes.Equal(b, last) {
			last = b
			if err := s.Send("task", v); err != nil {
				return err
			}
		}
		if v.Finished() || changed == nil {
			return nil
		}
		select {
		case <-changed:
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *Runner) watchAll(ctx context.Context, s *sse.Sender) error {
	_, version, changed := r.records.Since(0)
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
		var recs []*record.Record
		recs, version, changed = r.records.Since(version)
		slices.SortFunc(recs, func(a, b *record.Record) int { return cmp.Compare(a.ID(), b.ID()) })
		filter := r.authz.Filter(ctx)
		for _, rec := range recs {
			if !filter.Shows(rec) {
				continue
			}
			if err := s.Send("task", r.query.Present(ctx, rec, query.InState{}, rights.ListEnvironment)); err != nil {
				return err
			}
		}
	}
}

// hasAttempt refuses an attempt that a task does not have and will not have.
func hasAttempt(rec *record.Record, n int, follow bool) error {
	have := tries(&rec.Task)
	if n <= have || follow && !rec.Task.Phase.Finished() {
		return nil
	}
	switch have {
	case 0:
		return request.Errorf(422, "task %d has no attempt %d: it has not been started; leave --attempt out", rec.ID(), n)
	case 1:
		return request.Errorf(422, "task %d has no attempt %d: it has only attempt 1", rec.ID(), n)
	}
	return request.Errorf(422, "task %d has no attempt %d: it has attempts 1 to %d", rec.ID(), n, have)
}

// streamLogs sends the output of one or all attempts, then the task.
func (r *Runner) streamLogs(ctx context.Context, s *sse.Sender, rec *record.Record, o api.LogOptions) error {
	n, noted, told := max(1, o.Attempt), 0, false
	if o.Tail > 0 && o.Attempt == 0 {
		n = max(1, tries(&rec.Task)) // only the latest attempt has the last lines
	}
	for {
		newest, changed := r.records.Get(rec.ID())
		if newest != nil {
			rec = newest
		}
		if n <= tries(&rec.Task) {
			if a := rec.Task.Current(); o.Follow && a != nil && a.N == n && !r.Logs.Writing(int64(rec.ID()), n) {
				select { // a worker, of this daemon or of one just started, has not opened the log yet
				case <-changed:
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
					return ctx.Err()
				}
				continue
			}
			err := r.streamAttempt(ctx, s, rec.ID(), n, o)
			if err != nil && !errors.Is(err, tasklog.ErrNotFound) {
				return err
			}
			if o.Attempt > 0 {
				break
			}
			n, o.Tail = n+1, 0
			continue
		}
		if rec.Task.Phase.Finished() || !o.Follow || changed == nil {
			break
		}
		waits := rec.Task.Phase == model.Recovering || rec.Task.Phase == model.Queued
		trouble, eased := r.trouble.Now()
		if waits && len(trouble) > 0 && !told {
			told = true
			if err := s.Send("log", r.problemNote(n, trouble[0])); err != nil {
				return err
			}
		}
		told = told && len(trouble) > 0
		if waits && noted < n-1 {
			noted = n - 1
			if rec.Task.Last().Fault != nil { // such starts are repeated, so the trouble is reported once
				continue
			}
			if err := s.Send("log", r.relaunchNote(&rec.Task)); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-eased:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := hasAttempt(rec, o.Attempt, false); err != nil && o.Follow {
		if err := s.Send("log", api.LogLine{At: r.Clock.Time(), Attempt: o.Attempt, Stream: "carma", Line: err.Error()}); err != nil {
			return err
		}
	}
	v, err := r.query.Show(ctx, rec)
	if err != nil {
		return err
	}
	return s.Send("task", v)
}

func (r *Runner) streamAttempt(ctx context.Context, s *sse.Sender, id model.TaskID, n int, o api.LogOptions) error {
	if rec, _ := r.records.Get(id); o.Follow && rec != nil && len(rec.Submit.Ports) > 0 {
		ctx, end := context.WithCancel(ctx)
		var told sync.WaitGroup
		told.Go(func() {
			r.ports.Follow(ctx, gpu.AttemptKey{Task: id, Attempt: n}, func(p api.OpenPort) error {
				return s.Send("log", api.LogLine{At: r.Clock.Time(), Attempt: n, Stream: "carma", Line: fmt.Sprintf("port %s: %s", p.Port, p.URL())})
			})
		})
		defer told.Wait()
		defer end()
	}
	return r.Logs.Follow(ctx, int64(id), n, tasklog.Options{Follow: o.Follow, Tail: o.Tail}, func(l tasklog.Line) error {
		return s.Send("log", api.LogLine{
			At: l.At, Attempt: n, Stream: streamNames[l.Stream], Line: string(l.Text), Partial: l.Partial,
		})
	})
}

var streamNames = map[tasklog.Stream]string{tasklog.Stdout: "stdout", tasklog.Stderr: "stderr", tasklog.Note: "carma"}

// tries returns the number of a task's latest attempt, or 0 if it has none.
func tries(t *model.Task) int {
	if last := t.Last(); last != nil {
		return last.N
	}
	return 0
}

// problemNote returns the line for followers about a problem that keeps a task from
// starting. All pending tasks get the same Notice, so that a client that follows many
// tasks shows it once.
func (r *Runner) problemNote(attempt int, x api.Trouble) api.LogLine {
	return api.LogLine{
		At: r.Clock.Time(), Attempt: attempt, Stream: "carma", Notice: x.Scope + " " + x.Code,
		Line: fmt.Sprintf("it waits, and loses nothing: %s", x),
	}
}

// relaunchNote returns the line for followers about the reason for another attempt.
func (r *Runner) relaunchNote(t *model.Task) api.LogLine {
	need := "with " + t.NextGrant.String()
	switch {
	case t.GPUs == 0:
		need = "when there is room"
	case t.NextExclusive:
		need = "on GPUs of its own"
	}
	return api.LogLine{
		At: r.Clock.Time(), Attempt: tries(t), Stream: "carma",
		Line: fmt.Sprintf("attempt %d has ended (%s); it will run again %s", tries(t), words.Reason(t.Reason), need),
	}
}
