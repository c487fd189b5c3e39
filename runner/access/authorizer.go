package access

import (
	"context"
	"slices"
	"strings"
	"time"

	"carma/containers"
	"carma/runner/api"
	"carma/runner/audit"
	"carma/runner/engine"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"

	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"
)

// Config has the parts that an [Authorizer] works with.
type Config struct {
	Account  int               // the user that the daemon runs as
	Audit    *audit.Log        // the authorizer closes it
	Driver   containers.Driver // may have namespaces and users of its own
	Settings func() Settings   // the settings in force
	Now      func() time.Time  // the daemon's time, for the audit log
	Log      zerolog.Logger
}

// Settings are the settings that decide about rights. They can change at any time.
type Settings struct {
	// AdminGroup names the group of the administrators, or is empty.
	AdminGroup string
	// ClusterAdmins are the users of a cluster with the rights of administrators. A name
	// with @ before it is a group of the cluster.
	ClusterAdmins []string
	// HighPriority names the users who may use priority high: all (or empty), admins, or
	// user and group names separated by commas.
	HighPriority string
	// Open lets everybody read a task whose submission names no visibility.
	Open bool
}

// Authorizer decides what callers may do. It is safe for concurrent use.
type Authorizer struct {
	policy     rights.Policy
	log        *audit.Log
	reading    *semaphore.Weighted   // one request reads the audit log at a time
	reviews    *reviews              // nil if the engine has no users of its own
	namespaces containers.Namespaced // nil if the engine has no namespaces
	settings   func() Settings
	now        func() time.Time
	daemonLog  zerolog.Logger
}

// New returns an authorizer. Close it when no request is left.
func New(c Config) *Authorizer {
	a := &Authorizer{
		policy: rights.Policy{Account: c.Account}, log: c.Audit, reading: semaphore.NewWeighted(1),
		settings: c.Settings, now: c.Now, daemonLog: c.Log,
	}
	if d, ok := engine.As[containers.Reviewer](c.Driver); ok {
		a.reviews = newReviews(d, time.Now)
	}
	a.namespaces, _ = engine.As[containers.Namespaced](c.Driver)
	return a
}

// Forget drops the cached answers of the cluster about its users, so that the next requests ask
// it again.
func (a *Authorizer) Forget() {
	if a.reviews != nil {
		a.reviews.forget()
	}
}

// Close closes the audit log.
func (a *Authorizer) Close() error { return a.log.Close() }

// Policy returns the table of rights of this daemon.
func (a *Authorizer) Policy() rights.Policy { return a.policy }

// Subject converts a caller to the form of the table of rights.
func (a *Authorizer) Subject(who request.Caller) rights.Caller {
	c := rights.Caller{UID: who.UID, Name: who.Name}
	if who.Subject != nil {
		c.Named = a.clusterAdmin(who.Subject)
	} else if group := a.settings().AdminGroup; group != "" {
		c.Named = slices.Contains(who.Groups, group)
	}
	return c
}

// SubjectOf returns the caller of a request. An unknown caller has the rights of nobody.
func (a *Authorizer) SubjectOf(ctx context.Context) rights.Caller {
	if who, ok := request.CallerFrom(ctx); ok {
		return a.Subject(who)
	}
	return rights.Nobody()
}

// Administers reports whether a caller is an administrator.
func (a *Authorizer) Administers(who request.Caller) bool {
	return a.policy.Administers(a.Subject(who))
}

// OwnerOf returns the owner of a record's task.
func OwnerOf(rec *record.Record) rights.Owner {
	return rights.Owner{UID: rec.UID, Name: rec.User, Open: rec.Submit.Visibility == VisibilityOpen}
}

// May reports whether the caller of a request may do something to a task. It decides which
// parts an answer has; actions are checked with [Authorizer.Authorize].
func (a *Authorizer) May(ctx context.Context, act rights.Action, rec *record.Record) bool {
	return a.policy.May(act, a.SubjectOf(ctx), OwnerOf(rec))
}

// MayServer reports whether a caller may do something to the server.
func (a *Authorizer) MayServer(act rights.Action, who request.Caller) bool {
	return a.policy.MayServer(act, a.Subject(who))
}

// Authorize refuses an act on a task that a caller may not do. The act of an administrator
// is recorded, with a detail.
func (a *Authorizer) Authorize(who request.Caller, act rights.Action, rec *record.Record, detail string) error {
	return a.decide(who, act, OwnerOf(rec), audit.Record{Task: int64(rec.ID()), Detail: detail}, "task "+rec.ID().String())
}

// AuthorizeGroup refuses an act on a group that a caller may not do. rec is one of its
// tasks: one user has submitted all of them.
func (a *Authorizer) AuthorizeGroup(who request.Caller, act rights.Action, rec *record.Record, detail string) error {
	what := "group " + rec.Group
	return a.decide(who, act, OwnerOf(rec), audit.Record{Object: what, Detail: detail}, what)
}

// AuthorizeSuite refuses an act on a suite that a caller may not do.
func (a *Authorizer) AuthorizeSuite(who request.Caller, act rights.Action, owner rights.Owner, suite string) error {
	what := "suite " + suite
	return a.decide(who, act, owner, audit.Record{Object: what}, what)
}

// AuthorizeReading refuses the output of a task that the caller of a request may not read.
func (a *Authorizer) AuthorizeReading(ctx context.Context, rec *record.Record) error {
	who, err := request.KnownCaller(ctx)
	if err == nil {
		return a.Authorize(who, rights.Output, rec, "")
	}
	if a.May(ctx, rights.Output, rec) {
		return nil
	}
	return err
}

// decide looks up the right in the table, records the act of an administrator, and
// returns the refusal or nil.
func (a *Authorizer) decide(who request.Caller, act rights.Action, owner rights.Owner, r audit.Record, what string) error {
	c := a.Subject(who)
	r.Allowed = a.policy.May(act, c, owner)
	if a.policy.Administrative(act, c, owner) {
		r.Owner, r.OwnerUID = owner.Name, owner.UID
		a.record(c, act, r)
	}
	if r.Allowed {
		return nil
	}
	return request.Errorf(403, "%s", a.policy.Refusal(act, c, owner, what))
}

// CheckServer refuses an act on the server that a caller may not do, and records the
// refused attempt of an administrator.
func (a *Authorizer) CheckServer(who request.Caller, act rights.Action) error {
	c := a.Subject(who)
	if a.policy.MayServer(act, c) {
		return nil
	}
	if a.policy.Administrative(act, c, rights.Owner{}) {
		a.record(c, act, audit.Record{})
	}
	return request.Errorf(403, "%s", a.policy.ServerRefusal(act, c, a.settings().AdminGroup))
}

// AuthorizeServer does what CheckServer does for an action that is carried out now, and
// also records an action that only administrators may do. object names what the action
// changes, and detail describes the change.
func (a *Authorizer) AuthorizeServer(who request.Caller, act rights.Action, object, detail string) error {
	if err := a.CheckServer(who, act); err != nil {
		return err
	}
	if c := a.Subject(who); a.policy.Administrative(act, c, rights.Owner{}) {
		a.record(c, act, audit.Record{Object: object, Detail: detail, Allowed: true})
	}
	return nil
}

// record adds an act to the audit log. If the log cannot be written, the act is in the
// daemon's log only: an administrator must be able to stop a task on a full disk.
func (a *Authorizer) record(c rights.Caller, act rights.Action, r audit.Record) {
	r.At, r.Who, r.UID, r.Action = a.now(), c.Name, c.UID, string(act)
	if err := a.log.Add(r, act.Reads()); err != nil {
		a.daemonLog.Error().Err(err).Str("user", c.Name).Str("action", string(act)).Int64("task", r.Task).Str("object", r.Object).
			Str("owner", r.Owner).Bool("allowed", r.Allowed).Msg("an administrator's act could not be recorded")
	}
}

// clusterAdmin reports whether a user of a cluster is one of carma's admins: by name, or
// by group, which is written with @.
func (a *Authorizer) clusterAdmin(s *containers.Subject) bool {
	return slices.ContainsFunc(a.settings().ClusterAdmins, func(name string) bool {
		group, is := strings.CutPrefix(name, "@")
		return is && slices.Contains(s.Groups, group) || !is && name == s.Name
	})
}

// Me returns the caller of a request as the daemon identified it.
func (a *Authorizer) Me(ctx context.Context) (api.Me, error) {
	who, err := request.KnownCaller(ctx)
	if err != nil {
		return api.Me{}, err
	}
	me := api.Me{User: who.Name, UID: who.UID, Admin: a.Administers(who), Cluster: who.Subject != nil, Namespace: who.Namespace}
	if a.namespaces != nil && who.Subject == nil {
		me.Namespace = a.namespaces.Namespace()
	}
	return me, nil
}
