package runner

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"carma/containers"
	"carma/runner/api"
	"carma/runner/containerfiles"
	"carma/runner/engine"
	"carma/runner/helpers"
	"carma/runner/journal"
	"carma/runner/loop"
	"carma/runner/pull"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/retention"
	"carma/runner/rights"
	"carma/runner/sse"
	"carma/runner/storedoutput"
	"carma/runner/textcheck"
	"carma/runner/usermounts"
)

// newHelpers returns the manager of the suites' helpers.
func (r *Runner) newHelpers() (*helpers.Manager, error) {
	var err error
	r.helperOut, err = storedoutput.LoadHelpers(storedoutput.HelperDeps{
		Store: metaStore{r}, Logs: r.Logs, Clock: r.Clock, Log: r.Log, Limits: func() retention.Keep { return r.live().Keep },
	})
	if err != nil {
		return nil, err
	}
	d := helpers.Deps{
		Instance: r.instance, Driver: r.Driver, Store: metaStore{r}, Images: r.pull, Log: r.Log,
		Root: func() string { return r.engine.Info().Root },
		Limits: func() helpers.Limits {
			u := r.live().PerUser
			return helpers.Limits{Suites: u.Suites, Helpers: u.Helpers, Volumes: u.Volumes, Pull: r.live().Pull, Grace: r.live().StopGrace}
		},
		Machine: helperBooks{r}, Booked: helperBooks{r}.suites(),
		Bound:   func(spec *containers.Spec, s *api.Submit) { r.live().Bounds.BoundHelper(spec, *s) },
		Place:   r.placeHelper,
		Give:    r.places.Give,
		Shown:   r.places.CanGive,
		Unplace: func(o helpers.Owner, name string) { r.unplaceHelper(o, name) },
		Keep:    r.helperOut.Keep,
		Newest:  r.Journal.MaxTaskID,
		Ended:   r.runEnded,
		Closed:  r.opt.Closed,
	}
	host, ok := engine.As[containers.Hoster](r.Driver)
	switch {
	case !ok:
		d.Why = errors.New("the engine " + r.Driver.Name() + " has no networks and volumes with names")
	case host.CanHost() != nil:
		d.Why = host.CanHost()
	default:
		d.Host = host
	}
	return helpers.New(d)
}

// metaStore keeps values in the journal's meta.
type metaStore struct{ *Runner }

func (s metaStore) Put(key string, value []byte) error {
	err := s.Journal.SetMeta(key, value)
	if errors.Is(err, journal.ErrFull) {
		return loop.ErrFull
	}
	return err
}

func (s metaStore) Get(key string) ([]byte, error) {
	b, err := s.Journal.Meta(key)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	return b, err
}

func (s metaStore) Drop(key string) error {
	err := s.Journal.DropMeta(key)
	if errors.Is(err, journal.ErrNotFound) {
		return nil
	}
	return err
}

func ownerOf(who request.Caller) helpers.Owner {
	return helpers.Owner{UID: who.UID, GID: who.GID, Name: who.Name}
}

// helperRecord returns a record with the fields of a helper that mounts need.
func helperRecord(o helpers.Owner, n int) *record.Record {
	return &record.Record{UID: o.UID, GID: o.GID, User: o.Name, Submit: api.Submit{Mounts: make([]api.Mount, n)}}
}

// placeHelper checks a helper's mounts like a task's mounts, and shows the engine the
// checked folders.
func (r *Runner) placeHelper(ctx context.Context, o helpers.Owner, spec *containers.Spec, files bool) error {
	n := len(spec.Mounts)
	_, _, err := r.places.Place(ctx, helperRecord(o, n), spec.Name, spec.Mounts, containerfiles.Beside(spec, n, files))
	return err
}

func (r *Runner) unplaceHelper(o helpers.Owner, name string) {
	r.places.Remove(r.work, helperRecord(o, 1), name)
}

// runEnded reports whether the owner has submitted the group of a suite since it
// came up, and all its tasks have ended.
func (r *Runner) runEnded(o helpers.Owner, group string, after int64) (bool, error) {
	if r.records.OpenGroup(group) {
		return false, nil
	}
	newest, err := r.find.NewestOf(group)
	if request.IsNotFound(err) || err == nil && (int64(newest.GroupID) <= after || newest.UID != o.UID) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	recs, err := r.find.Group(group)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(recs, func(rec *record.Record) bool { return !rec.Task.Phase.Finished() }), nil
}

// PutSuite starts the helpers of a suite. If check is set, it only checks whether they could
// start.
func (r *Runner) PutSuite(ctx context.Context, who request.Caller, name string, s api.Suite, check bool) (api.SuiteState, error) {
	if err := textcheck.Name("suite", name); err != nil {
		return api.SuiteState{}, err
	}
	if r.draining.Load() && !check {
		return api.SuiteState{}, request.Errorf(503, "this daemon starts nothing more: it is being drained")
	}
	mayMount := r.userMounts.Check(ctx, who)
	for i := range s.Helpers {
		h := &s.Helpers[i]
		err := cmp.Or(r.checkHelper(who, h), mayMount(h.Container.Mounts))
		if refused, ok := err.(*request.Error); ok {
			return api.SuiteState{}, request.Errorf(refused.Status, "%s: %s", h.Name, refused.Text)
		}
		if err != nil {
			return api.SuiteState{}, err
		}
	}
	if !check && r.records.OpenGroup(name) {
		return api.SuiteState{}, request.Errorf(409, "a group is called %s already and is not finished; choose another name, or `carma suite down -p %s` first", name, name)
	}
	if err := r.helpers.Up(ctx, ownerOf(who), name, s, pull.CredentialsFrom(ctx), check, r.authz.MayServer(rights.Unlimited, who)); err != nil {
		return api.SuiteState{}, refusedHelpers(err)
	}
	if check {
		return api.SuiteState{Name: name, User: who.Name, Phase: "starting", Helpers: []api.HelperState{}}, nil
	}
	return r.suiteState(ctx, ownerOf(who), name)
}

// checkHelper checks the options that a helper and a task have in common.
func (r *Runner) checkHelper(who request.Caller, h *api.Helper) error {
	s := h.Container
	if wrong := s.Check(); wrong != nil {
		return request.Errorf(422, "%v", wrong)
	}
	return cmp.Or(textcheck.Submit(s), r.live().Bounds.Check(s), usermounts.CheckPaths(s.Mounts))
}

// refusedHelpers converts a refusal of package helpers to an API error.
func refusedHelpers(err error) error {
	var refused *helpers.RefusedError
	if errors.As(err, &refused) {
		return request.Errorf(refused.Status, "%s", refused.Text)
	}
	return err
}

func (r *Runner) suiteState(ctx context.Context, o helpers.Owner, name string) (api.SuiteState, error) {
	s, err := r.helpers.State(ctx, o, name)
	return s, refusedHelpers(err)
}

// suiteOf finds the suite with a name, if the caller may do the action on it.
func (r *Runner) suiteOf(who request.Caller, a rights.Action, name string) (helpers.Owner, error) {
	o, err := r.helpers.Find(ownerOf(who), name, r.authz.Administers(who))
	if err != nil {
		return o, refusedHelpers(err)
	}
	return o, r.authz.AuthorizeSuite(who, a, rights.Owner{UID: o.UID, Name: o.Name}, name)
}

// streamHelperLogs sends the output of a helper.
func (r *Runner) streamHelperLogs(ctx context.Context, s *sse.Sender, o helpers.Owner, suite, name string, opt api.LogOptions) error {
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
	line := r.lineSink(func(l api.LogLine) {
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
		if err := r.helpers.Logs(ctx, o, suite, name, false, at); err != nil {
			return err
		}
		tail := last
		opt.Tail = 0
		for _, l := range tail {
			send(l)
		}
		if opt.Follow && len(tail) > 0 { // output after that end
			since := tail[len(tail)-1].At
			at = r.lineSink(func(l api.LogLine) {
				if l.At.After(since) {
					send(l)
				}
			})
		}
	}
	if opt.Follow || last == nil {
		if err := r.helpers.Logs(ctx, o, suite, name, opt.Follow, at); err != nil && failed == nil {
			return err
		}
	}
	return cmp.Or(failed, s.Send("end", struct{}{}))
}
