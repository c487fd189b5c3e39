// Package suites runs the helpers of suites for their owners: it checks rights, options and
// mounts, books the machine's memory and processors, and sends the helpers' output. The helpers
// themselves are in package helpers.
package suites

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"carma/containers"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/containerfiles"
	"carma/runner/engine"
	"carma/runner/helpers"
	"carma/runner/journal"
	"carma/runner/loop"
	"carma/runner/machine"
	"carma/runner/pull"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/retention"
	"carma/runner/rights"
	"carma/runner/sse"
	"carma/runner/storedoutput"
	"carma/runner/streams"
	"carma/runner/tasklog"
	"carma/runner/textcheck"
	"carma/runner/usermounts"

	"github.com/danielgtaylor/huma/v2"
	"github.com/rs/zerolog"
)

// Config holds the parts that Suites work with.
type Config struct {
	Instance string // labels the containers of this data folder
	Closed   bool   // containers have no network
	Driver   containers.Driver
	Engine   *engine.Health
	Images   *pull.Puller
	Journal  *journal.Journal
	Logs     *tasklog.Store
	Loop     *loop.Loop
	Find     *record.Finder
	Authz    *access.Authorizer
	Places   *containerfiles.Places
	Opener   *usermounts.Opener
	Memory   *machine.Memory
	Clock    *clock.Clock
	Log      zerolog.Logger
	Work     context.Context // ends when the daemon stops
	Settings func() Settings
	Draining func() bool
}

// Settings are the settings in force. They can change at any time.
type Settings struct {
	Limits helpers.Limits
	Bounds machine.Bounds
	Keep   retention.Keep // how long output is kept
}

// Suites starts and stops the helpers of suites for their owners.
type Suites struct {
	*helpers.Manager
	c      Config
	output *storedoutput.Helpers // of helpers that have ended
}

// Open returns the suites of a daemon, with the helpers that an earlier daemon left.
func Open(c Config) (*Suites, error) {
	u := &Suites{c: c}
	var err error
	u.output, err = storedoutput.LoadHelpers(storedoutput.HelperDeps{
		Store: loop.MetaStore{Journal: c.Journal}, Logs: c.Logs, Clock: c.Clock, Log: c.Log, Limits: func() retention.Keep { return c.Settings().Keep },
	})
	if err != nil {
		return nil, err
	}
	books := Books{Loop: c.Loop, Memory: c.Memory, Bounds: func() machine.Bounds { return c.Settings().Bounds }}
	d := helpers.Deps{
		Instance: c.Instance, Driver: c.Driver, Store: loop.MetaStore{Journal: c.Journal}, Images: c.Images, Log: c.Log,
		Root:    func() string { return c.Engine.Info().Root },
		Limits:  func() helpers.Limits { return c.Settings().Limits },
		Machine: books, Booked: books.suites(),
		Bound:   func(spec *containers.Spec, s *api.Submit) { c.Settings().Bounds.BoundHelper(spec, *s) },
		Place:   u.placeHelper,
		Give:    c.Places.Give,
		Shown:   c.Places.CanGive,
		Unplace: u.unplaceHelper,
		Keep:    u.output.Keep,
		Newest:  c.Journal.MaxTaskID,
		Ended:   u.runEnded,
		Closed:  c.Closed,
	}
	host, ok := engine.As[containers.Hoster](c.Driver)
	switch {
	case !ok:
		d.Why = errors.New("the engine " + c.Driver.Name() + " has no networks and volumes with names")
	case host.CanHost() != nil:
		d.Why = host.CanHost()
	default:
		d.Host = host
	}
	u.Manager, err = helpers.New(d)
	return u, err
}

// Output returns the output that is kept of helpers.
func (u *Suites) Output() *storedoutput.Helpers { return u.output }

// OwnerOf returns a caller as the owner of suites.
func OwnerOf(who request.Caller) helpers.Owner {
	return helpers.Owner{UID: who.UID, GID: who.GID, Name: who.Name}
}

// helperRecord returns a record with the fields of a helper that mounts need.
func helperRecord(o helpers.Owner, n int) *record.Record {
	return &record.Record{UID: o.UID, GID: o.GID, User: o.Name, Submit: api.Submit{Mounts: make([]api.Mount, n)}}
}

// placeHelper checks a helper's mounts like a task's mounts, and shows the engine the
// checked folders.
func (u *Suites) placeHelper(ctx context.Context, o helpers.Owner, spec *containers.Spec, files bool) error {
	n := len(spec.Mounts)
	_, _, err := u.c.Places.Place(ctx, helperRecord(o, n), spec.Name, spec.Mounts, containerfiles.Beside(spec, n, files))
	return err
}

func (u *Suites) unplaceHelper(o helpers.Owner, name string) {
	u.c.Places.Remove(u.c.Work, helperRecord(o, 1), name)
}

// runEnded reports whether the owner has submitted the group of a suite since it
// came up, and all its tasks have ended.
func (u *Suites) runEnded(o helpers.Owner, group string, after int64) (bool, error) {
	if u.c.Find.Records.OpenGroup(group) {
		return false, nil
	}
	newest, err := u.c.Find.NewestOf(group)
	if request.IsNotFound(err) || err == nil && (int64(newest.GroupID) <= after || newest.UID != o.UID) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	recs, err := u.c.Find.Group(group)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(recs, func(rec *record.Record) bool { return !rec.Task.Phase.Finished() }), nil
}

// Put starts the helpers of a suite. If check is set, it only checks whether they could
// start.
func (u *Suites) Put(ctx context.Context, who request.Caller, name string, s api.Suite, check bool) (api.SuiteState, error) {
	if err := textcheck.Name("suite", name); err != nil {
		return api.SuiteState{}, err
	}
	if u.c.Draining() && !check {
		return api.SuiteState{}, request.Errorf(503, "this daemon starts nothing more: it is being drained")
	}
	mayMount := u.c.Opener.Check(ctx, who)
	for i := range s.Helpers {
		h := &s.Helpers[i]
		err := cmp.Or(u.checkHelper(who, h), mayMount(h.Container.Mounts))
		if refused, ok := err.(*request.Error); ok {
			return api.SuiteState{}, request.Errorf(refused.Status, "%s: %s", h.Name, refused.Text)
		}
		if err != nil {
			return api.SuiteState{}, err
		}
	}
	if !check && u.c.Find.Records.OpenGroup(name) {
		return api.SuiteState{}, request.Errorf(409, "a group is called %s already and is not finished; choose another name, or `carma suite down -p %s` first", name, name)
	}
	if err := u.Up(ctx, OwnerOf(who), name, s, pull.CredentialsFrom(ctx), check, u.c.Authz.MayServer(rights.Unlimited, who)); err != nil {
		return api.SuiteState{}, refusedHelpers(err)
	}
	if check {
		return api.SuiteState{Name: name, User: who.Name, Phase: "starting", Helpers: []api.HelperState{}}, nil
	}
	return u.state(ctx, OwnerOf(who), name)
}

// checkHelper checks the options that a helper and a task have in common.
func (u *Suites) checkHelper(who request.Caller, h *api.Helper) error {
	s := h.Container
	if wrong := s.Check(); wrong != nil {
		return request.Errorf(422, "%v", wrong)
	}
	return cmp.Or(textcheck.Submit(s), u.c.Settings().Bounds.Check(s), usermounts.CheckPaths(s.Mounts))
}

// refusedHelpers converts a refusal of package helpers to an API error.
func refusedHelpers(err error) error {
	var refused *helpers.RefusedError
	if errors.As(err, &refused) {
		return request.Errorf(refused.Status, "%s", refused.Text)
	}
	return err
}

func (u *Suites) state(ctx context.Context, o helpers.Owner, name string) (api.SuiteState, error) {
	s, err := u.State(ctx, o, name)
	return s, refusedHelpers(err)
}

// Owner finds the named suite, if the caller may do the action on it.
func (u *Suites) Owner(who request.Caller, a rights.Action, name string) (helpers.Owner, error) {
	o, err := u.Find(OwnerOf(who), name, u.c.Authz.Administers(who))
	if err != nil {
		return o, refusedHelpers(err)
	}
	return o, u.c.Authz.AuthorizeSuite(who, a, rights.Owner{UID: o.UID, Name: o.Name}, name)
}

// sendLogs sends the output of a helper.
func (u *Suites) sendLogs(ctx context.Context, s *sse.Sender, o helpers.Owner, suite, name string, opt api.LogOptions) error {
	var failed error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var last []api.LogLine // the end of the present output, with Tail
	send := func(l api.LogLine) {
		if failed == nil {
			if failed = s.Send("log", l); failed != nil {
				cancel()
			}
		}
	}
	line := u.lineSink(func(l api.LogLine) {
		if opt.Tail == 0 {
			send(l)
			return
		}
		if last = append(last, l); len(last) > opt.Tail {
			last = last[1:]
		}
	})
	at := line
	if opt.Tail > 0 {
		if err := u.Manager.Logs(ctx, o, suite, name, false, at); err != nil {
			return err
		}
		tail := last
		opt.Tail = 0
		for _, l := range tail {
			send(l)
		}
		if opt.Follow && len(tail) > 0 { // output after that end
			since := tail[len(tail)-1].At
			at = u.lineSink(func(l api.LogLine) {
				if l.At.After(since) {
					send(l)
				}
			})
		}
	}
	if opt.Follow || last == nil {
		if err := u.Manager.Logs(ctx, o, suite, name, opt.Follow, at); err != nil && failed == nil {
			return err
		}
	}
	return cmp.Or(failed, s.Send("end", struct{}{}))
}

// Get returns the state of a caller's suite.
func (u *Suites) Get(ctx context.Context, who request.Caller, in *api.SuiteQuery) (api.SuiteState, error) {
	if in.Ended {
		return u.output.Suite(u.c.Authz, who, in.Suite)
	}
	o, err := u.Owner(who, rights.SeeSuite, in.Suite)
	if err != nil {
		return api.SuiteState{}, err
	}
	return u.state(ctx, o, in.Suite)
}

// Drop stops the helpers of a suite, and removes its volumes if asked.
func (u *Suites) Drop(ctx context.Context, who request.Caller, in *api.SuiteDrop) (api.SuiteRemoved, error) {
	o, err := u.Owner(who, rights.DropSuite, in.Suite)
	if err == nil && in.Volumes {
		err = u.c.Authz.AuthorizeSuite(who, rights.DropVolumes, rights.Owner{UID: o.UID, Name: o.Name}, in.Suite)
	}
	if request.IsNotFound(err) { // the suite's volumes may still exist
		o, err = OwnerOf(who), nil
	}
	if err != nil {
		return api.SuiteRemoved{}, err
	}
	removed, err := u.Down(ctx, o, in.Suite, in.Volumes, time.Duration(in.Grace))
	return removed, refusedHelpers(err)
}

// Logs sends the output of a helper.
func (u *Suites) Logs(ctx context.Context, in *api.LogsOfHelper) (*huma.StreamResponse, error) {
	who, err := request.KnownCaller(ctx)
	if err != nil {
		return nil, err
	}
	opt := api.LogOptions{Follow: in.Follow, Tail: in.Tail}
	o, err := u.Owner(who, rights.HelperOutput, in.Suite)
	if request.IsNotFound(err) {
		run, wrong := u.output.Find(u.c.Authz, who, rights.HelperOutput, in.Suite)
		if !request.IsNotFound(wrong) {
			err = wrong
		}
		if wrong == nil && slices.Contains(run.Names, in.Helper) {
			return sse.Stream(func(_ context.Context, s *sse.Sender) error { return u.sendEnded(s, run, in.Helper, opt) }), nil
		}
	}
	if err == nil {
		err = refusedHelpers(u.Known(o, in.Suite, in.Helper))
	}
	if err != nil {
		return nil, err
	}
	return sse.Stream(func(ctx context.Context, s *sse.Sender) error {
		return u.sendLogs(ctx, s, o, in.Suite, in.Helper, opt)
	}), nil
}

// lineSink converts a container's output to lines of the API.
func (u *Suites) lineSink(send func(api.LogLine)) containers.LogSink {
	names := map[containers.Stream]string{containers.Stdout: "stdout", containers.Stderr: "stderr", containers.Missing: "carma"}
	return func(at time.Time, stream containers.Stream, line []byte, partial bool) {
		send(api.LogLine{At: u.c.Clock.FromWall(at).Time(), Attempt: 1, Stream: names[stream], Line: string(line), Partial: partial})
	}
}

// sendEnded sends the output that is kept of a helper's container.
func (u *Suites) sendEnded(s *sse.Sender, run storedoutput.Run, name string, opt api.LogOptions) error {
	attempt := slices.Index(run.Names, name) + 1
	err := u.c.Logs.Follow(u.c.Work, run.ID, attempt, tasklog.Options{Tail: opt.Tail}, func(l tasklog.Line) error {
		return s.Send("log", api.LogLine{At: u.c.Clock.FromWall(l.At).Time(), Attempt: 1, Stream: streams.StreamName(l.Stream), Line: string(l.Text), Partial: l.Partial})
	})
	return cmp.Or(err, s.Send("end", struct{}{}))
}
