package runner

import (
	"context"
	"slices"
	"strings"

	"carma/containers"
	"carma/runner/audit"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

// policy returns the table of rights of this daemon.
func (r *Runner) policy() rights.Policy { return rights.Policy{Account: r.self} }

// subject converts a caller to the form of the table of rights.
func (r *Runner) subject(who request.Caller) rights.Caller {
	c := rights.Caller{UID: who.UID, Name: who.Name}
	if who.Subject != nil {
		c.Named = r.clusterAdmin(who.Subject)
	} else if group := r.live().AdminGroup; group != "" {
		c.Named = slices.Contains(who.Groups, group)
	}
	return c
}

// subjectOf returns the caller of a request. An unknown caller has the rights of nobody.
func (r *Runner) subjectOf(ctx context.Context) rights.Caller {
	if who, ok := request.CallerFrom(ctx); ok {
		return r.subject(who)
	}
	return rights.Nobody()
}

// ownerOfTask returns the owner of a record's task.
func ownerOfTask(rec *record.Record) rights.Owner {
	return rights.Owner{UID: rec.UID, Name: rec.User, Open: rec.Submit.Visibility == VisibilityOpen}
}

// may reports whether the caller of a request may do something to a task. It decides which
// parts an answer has; actions are checked with [Runner.authorize].
func (r *Runner) may(ctx context.Context, a rights.Action, rec *record.Record) bool {
	return r.policy().May(a, r.subjectOf(ctx), ownerOfTask(rec))
}

// mayServer reports whether a caller may do something to the server.
func (r *Runner) mayServer(a rights.Action, who request.Caller) bool {
	return r.policy().MayServer(a, r.subject(who))
}

// authorize refuses an act on a task that a caller may not do. The act of an administrator
// is recorded, with a detail.
func (r *Runner) authorize(who request.Caller, a rights.Action, rec *record.Record, detail string) error {
	return r.decide(r.subject(who), a, ownerOfTask(rec), audit.Record{Task: int64(rec.ID()), Detail: detail}, "task "+rec.ID().String())
}

// authorizeGroup refuses an act on a group that a caller may not do. rec is one of its
// tasks: one user has submitted all of them.
func (r *Runner) authorizeGroup(who request.Caller, a rights.Action, rec *record.Record, detail string) error {
	what := "group " + rec.Group
	return r.decide(r.subject(who), a, ownerOfTask(rec), audit.Record{Object: what, Detail: detail}, what)
}

// authorizeSuite refuses an act on a suite that a caller may not do.
func (r *Runner) authorizeSuite(who request.Caller, a rights.Action, owner rights.Owner, suite string) error {
	what := "suite " + suite
	return r.decide(r.subject(who), a, owner, audit.Record{Object: what}, what)
}

// decide looks up the right in the table, records the act of an administrator, and
// returns the refusal or nil.
func (r *Runner) decide(c rights.Caller, a rights.Action, owner rights.Owner, act audit.Record, what string) error {
	p := r.policy()
	act.Allowed = p.May(a, c, owner)
	if p.Administrative(a, c, owner) {
		act.Owner, act.OwnerUID = owner.Name, owner.UID
		r.record(c, a, act)
	}
	if act.Allowed {
		return nil
	}
	return request.Errorf(403, "%s", p.Refusal(a, c, owner, what))
}

// checkServer refuses an act on the server that a caller may not do, and records the
// refused attempt of an administrator.
func (r *Runner) checkServer(who request.Caller, a rights.Action) error {
	p, c := r.policy(), r.subject(who)
	if p.MayServer(a, c) {
		return nil
	}
	if p.Administrative(a, c, rights.Owner{}) {
		r.record(c, a, audit.Record{})
	}
	return request.Errorf(403, "%s", p.ServerRefusal(a, c, r.live().AdminGroup))
}

// authorizeServer does what checkServer does for an action that is carried out now, and
// also records an action that only administrators may do. object names what the action
// changes, and detail describes the change.
func (r *Runner) authorizeServer(who request.Caller, a rights.Action, object, detail string) error {
	if err := r.checkServer(who, a); err != nil {
		return err
	}
	if c := r.subject(who); r.policy().Administrative(a, c, rights.Owner{}) {
		r.record(c, a, audit.Record{Object: object, Detail: detail, Allowed: true})
	}
	return nil
}

// record adds an act to the audit log. If the log cannot be written, the act is in the
// daemon's log only: an administrator must be able to stop a task on a full disk.
func (r *Runner) record(c rights.Caller, a rights.Action, act audit.Record) {
	act.At, act.Who, act.UID, act.Action = r.Clock.Time(), c.Name, c.UID, string(a)
	if err := r.audit.Add(act, a.Reads()); err != nil {
		r.Log.Error().Err(err).Str("user", c.Name).Str("action", string(a)).Int64("task", act.Task).Str("object", act.Object).
			Str("owner", act.Owner).Bool("allowed", act.Allowed).Msg("an administrator's act could not be recorded")
	}
}

// clusterAdmin reports whether a user of a cluster is one of carma's admins: by name, or
// by group, which is written with @.
func (r *Runner) clusterAdmin(s *containers.Subject) bool {
	return slices.ContainsFunc(r.live().ClusterAdmins, func(name string) bool {
		group, is := strings.CutPrefix(name, "@")
		return is && slices.Contains(s.Groups, group) || !is && name == s.Name
	})
}
