// Package streams sends followers of tasks their states and their output, as server-sent events.
package streams

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
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/gpu"
	"carma/runner/ports"
	"carma/runner/problems"
	"carma/runner/query"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
	"carma/runner/sse"
	"carma/runner/tasklog"

	"github.com/danielgtaylor/huma/v2"
)

// Config holds the parts that Streams work with.
type Config struct {
	Find     *record.Finder
	Authz    *access.Authorizer
	Logs     *tasklog.Store
	Ports    *ports.Book
	Problems *problems.Current
	Tasks    *query.Tasks
	Clock    *clock.Clock
}

// Streams sends the states and the output of tasks.
type Streams struct{ c Config }

// New returns the streams of a daemon.
func New(c Config) *Streams { return &Streams{c} }

// Logs sends the output of a task, and then the task.
func (f *Streams) Logs(ctx context.Context, in *api.LogsOfTask) (*huma.StreamResponse, error) {
	rec, err := f.c.Find.Find(in.Ref)
	if err == nil {
		err = f.c.Authz.AuthorizeReading(ctx, rec)
	}
	if err == nil {
		err = hasAttempt(rec, in.Attempt, in.Follow)
	}
	if err != nil {
		return nil, err
	}
	return sse.Stream(func(ctx context.Context, s *sse.Sender) error { return f.streamLogs(ctx, s, rec, in.LogOptions) }), nil
}

// States sends the states of a task until its end.
func (f *Streams) States(_ context.Context, in *api.TaskPath) (*huma.StreamResponse, error) {
	rec, err := f.c.Find.Find(in.Ref)
	if err != nil {
		return nil, err
	}
	return sse.Stream(func(ctx context.Context, s *sse.Sender) error { return f.watchTask(ctx, s, rec) }), nil
}

// watchTask sends the present state of a task and every later state until the last. The
// reason why a task waits changes without an event, so it is checked once a second.
func (f *Streams) watchTask(ctx context.Context, s *sse.Sender, rec *record.Record) error {
	var last []byte
	for {
		newest, changed := f.c.Find.Records.Get(rec.ID())
		if newest != nil {
			rec = newest
		}
		v, err := f.c.Tasks.Show(ctx, rec)
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

func (f *Streams) All(ctx context.Context, s *sse.Sender) error {
	_, version, changed := f.c.Find.Records.Since(0)
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
		var recs []*record.Record
		recs, version, changed = f.c.Find.Records.Since(version)
		slices.SortFunc(recs, func(a, b *record.Record) int { return cmp.Compare(a.ID(), b.ID()) })
		filter := f.c.Authz.Filter(ctx)
		for _, rec := range recs {
			if !filter.Shows(rec) {
				continue
			}
			if err := s.Send("task", f.c.Tasks.Present(ctx, rec, query.InState{}, rights.ListEnvironment)); err != nil {
				return err
			}
		}
	}
}

// hasAttempt refuses an attempt that a task does not have and will not have.
func hasAttempt(rec *record.Record, n int, follow bool) error {
	have := record.LastAttempt(&rec.Task)
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
func (f *Streams) streamLogs(ctx context.Context, s *sse.Sender, rec *record.Record, o api.LogOptions) error {
	n, noted, said := max(1, o.Attempt), 0, false
	if o.Tail > 0 && o.Attempt == 0 {
		n = max(1, record.LastAttempt(&rec.Task)) // only the latest attempt has the last lines
	}
	for {
		newest, changed := f.c.Find.Records.Get(rec.ID())
		if newest != nil {
			rec = newest
		}
		if n <= record.LastAttempt(&rec.Task) {
			if a := rec.Task.Current(); o.Follow && a != nil && a.N == n && !f.c.Logs.Writing(int64(rec.ID()), n) {
				select { // a worker, of this daemon or of one just started, has not opened the log yet
				case <-changed:
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
					return ctx.Err()
				}
				continue
			}
			err := f.streamAttempt(ctx, s, rec.ID(), n, o)
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
		trouble, eased := f.c.Problems.Now()
		if waits && len(trouble) > 0 && !said {
			said = true
			if err := s.Send("log", f.problemNote(n, trouble[0])); err != nil {
				return err
			}
		}
		said = said && len(trouble) > 0
		if waits && noted < n-1 {
			noted = n - 1
			if rec.Task.Last().Fault != nil { // such starts are repeated, so the trouble is reported once
				continue
			}
			if err := s.Send("log", f.relaunchNote(&rec.Task)); err != nil {
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
		if err := s.Send("log", api.LogLine{At: f.c.Clock.Time(), Attempt: o.Attempt, Stream: "carma", Line: err.Error()}); err != nil {
			return err
		}
	}
	v, err := f.c.Tasks.Show(ctx, rec)
	if err != nil {
		return err
	}
	return s.Send("task", v)
}

func (f *Streams) streamAttempt(ctx context.Context, s *sse.Sender, id model.TaskID, n int, o api.LogOptions) error {
	if rec, _ := f.c.Find.Records.Get(id); o.Follow && rec != nil && len(rec.Submit.Ports) > 0 {
		ctx, end := context.WithCancel(ctx)
		var sending sync.WaitGroup
		sending.Go(func() {
			f.c.Ports.Follow(ctx, gpu.AttemptKey{Task: id, Attempt: n}, func(p api.OpenPort) error {
				return s.Send("log", api.LogLine{At: f.c.Clock.Time(), Attempt: n, Stream: "carma", Line: fmt.Sprintf("port %s: %s", p.Port, p.URL())})
			})
		})
		defer sending.Wait()
		defer end()
	}
	return f.c.Logs.Follow(ctx, int64(id), n, tasklog.Options{Follow: o.Follow, Tail: o.Tail}, func(l tasklog.Line) error {
		return s.Send("log", api.LogLine{
			At: l.At, Attempt: n, Stream: StreamName(l.Stream), Line: string(l.Text), Partial: l.Partial,
		})
	})
}

// problemNote returns the line for followers about a problem that keeps a task from
// starting. All pending tasks get the same Notice, so that a client that follows many
// tasks shows it once.
func (f *Streams) problemNote(attempt int, x api.Trouble) api.LogLine {
	return api.LogLine{
		At: f.c.Clock.Time(), Attempt: attempt, Stream: "carma", Notice: x.Scope + " " + x.Code,
		Line: fmt.Sprintf("it waits, and loses nothing: %s", x),
	}
}

// relaunchNote returns the line for followers about the reason for another attempt.
func (f *Streams) relaunchNote(t *model.Task) api.LogLine {
	need := "with " + t.NextGrant.String()
	switch {
	case t.GPUs == 0:
		need = "when there is room"
	case t.NextExclusive:
		need = "on GPUs of its own"
	}
	return api.LogLine{
		At: f.c.Clock.Time(), Attempt: record.LastAttempt(t), Stream: "carma",
		Line: fmt.Sprintf("attempt %d has ended (%s); it will run again %s", record.LastAttempt(t), words.Reason(t.Reason), need),
	}
}

// StreamName returns the name of a stream of output in the API.
func StreamName(s tasklog.Stream) string {
	switch s {
	case tasklog.Stdout:
		return "stdout"
	case tasklog.Stderr:
		return "stderr"
	case tasklog.Note:
		return "carma"
	}
	return ""
}
