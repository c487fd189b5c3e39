package runner

import (
	"cmp"
	"context"
	"slices"
	"time"

	"carma/containers"
	"carma/runner/api"
	"carma/runner/request"
	"carma/runner/rights"
	"carma/runner/sse"
	"carma/runner/storedoutput"
	"carma/runner/streams"
	"carma/runner/tasklog"

	"github.com/danielgtaylor/huma/v2"
)

// suite returns the state of a caller's suite.
func (r *Runner) suite(ctx context.Context, who request.Caller, in *api.SuiteQuery) (api.SuiteState, error) {
	if in.Ended {
		return r.helperOut.Suite(r.authz, who, in.Suite)
	}
	o, err := r.suiteOf(who, rights.SeeSuite, in.Suite)
	if err != nil {
		return api.SuiteState{}, err
	}
	return r.suiteState(ctx, o, in.Suite)
}

func (r *Runner) dropSuite(ctx context.Context, who request.Caller, in *api.SuiteDrop) (api.SuiteRemoved, error) {
	o, err := r.suiteOf(who, rights.DropSuite, in.Suite)
	if err == nil && in.Volumes {
		err = r.authz.AuthorizeSuite(who, rights.DropVolumes, rights.Owner{UID: o.UID, Name: o.Name}, in.Suite)
	}
	if request.IsNotFound(err) { // the suite's volumes may still exist
		o, err = ownerOf(who), nil
	}
	if err != nil {
		return api.SuiteRemoved{}, err
	}
	removed, err := r.helpers.Down(ctx, o, in.Suite, in.Volumes, time.Duration(in.Grace))
	return removed, refusedHelpers(err)
}

func (r *Runner) helperLogs(ctx context.Context, in *api.LogsOfHelper) (*huma.StreamResponse, error) {
	who, err := request.KnownCaller(ctx)
	if err != nil {
		return nil, err
	}
	opt := api.LogOptions{Follow: in.Follow, Tail: in.Tail}
	o, err := r.suiteOf(who, rights.HelperOutput, in.Suite)
	if request.IsNotFound(err) {
		run, wrong := r.helperOut.Find(r.authz, who, rights.HelperOutput, in.Suite)
		if !request.IsNotFound(wrong) {
			err = wrong
		}
		if wrong == nil && slices.Contains(run.Names, in.Helper) {
			return sse.Stream(func(_ context.Context, s *sse.Sender) error { return r.streamEnded(s, run, in.Helper, opt) }), nil
		}
	}
	if err == nil {
		err = refusedHelpers(r.helpers.Known(o, in.Suite, in.Helper))
	}
	if err != nil {
		return nil, err
	}
	return sse.Stream(func(ctx context.Context, s *sse.Sender) error {
		return r.streamHelperLogs(ctx, s, o, in.Suite, in.Helper, opt)
	}), nil
}

// lineSink converts a container's output to lines of the API.
func (r *Runner) lineSink(send func(api.LogLine)) containers.LogSink {
	names := map[containers.Stream]string{containers.Stdout: "stdout", containers.Stderr: "stderr", containers.Missing: "carma"}
	return func(at time.Time, stream containers.Stream, line []byte, partial bool) {
		send(api.LogLine{At: r.Clock.FromWall(at).Time(), Attempt: 1, Stream: names[stream], Line: string(line), Partial: partial})
	}
}

// streamEnded sends the output that is kept of a helper's container.
func (r *Runner) streamEnded(s *sse.Sender, run storedoutput.Run, name string, opt api.LogOptions) error {
	attempt := slices.Index(run.Names, name) + 1
	err := r.Logs.Follow(r.work, run.ID, attempt, tasklog.Options{Tail: opt.Tail}, func(l tasklog.Line) error {
		return s.Send("log", api.LogLine{At: r.Clock.FromWall(l.At).Time(), Attempt: 1, Stream: streams.StreamName(l.Stream), Line: string(l.Text), Partial: l.Partial})
	})
	return cmp.Or(err, s.Send("end", struct{}{}))
}
