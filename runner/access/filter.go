package access

import (
	"context"
	"slices"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

// Filter decides which tasks the caller of a request may know of. A user of a cluster may
// know of the tasks in namespaces where the user may get pods. Everybody else may know of
// all tasks.
type Filter struct {
	by   *Authorizer
	ctx  context.Context
	who  *containers.Subject // nil means all
	seen map[string]bool
	err  error // why the cluster could not be asked; then no task is visible
}

// Filter returns the filter for the caller of a request.
func (a *Authorizer) Filter(ctx context.Context) *Filter {
	who, _ := request.CallerFrom(ctx)
	return &Filter{by: a, ctx: ctx, who: who.Subject, seen: map[string]bool{}}
}

// All reports whether the caller may know of all tasks.
func (f *Filter) All() bool { return f.who == nil }

// Err returns why the cluster could not be asked, or nil. After an error, the filter shows
// no task.
func (f *Filter) Err() error { return f.err }

// Shows reports whether the caller may know of a task.
func (f *Filter) Shows(rec *record.Record) bool {
	if f.who == nil {
		return true
	}
	namespace := f.by.NamespaceOf(rec)
	yes, known := f.seen[namespace]
	if !known && f.err == nil {
		yes, f.err = f.by.reviews.may(f.ctx, f.who, in(GetPods, namespace))
		f.seen[namespace] = yes
	}
	return yes && f.err == nil
}

// Info removes from info what the caller may not see: a user of a cluster sees nothing of
// other users, and no task that they may not know of. tasks has the records of the tasks.
func (a *Authorizer) Info(ctx context.Context, info api.Info, tasks *record.Store) (api.Info, error) {
	who, _ := request.CallerFrom(ctx)
	if a.MayServer(rights.SeeUse, who) {
		return info, nil
	}
	if info.Output != nil {
		kept := *info.Output
		kept.Users, kept.Dir = only(kept.Users, who.Name), ""
		info.Output = &kept
	}
	if info.Energy != nil {
		kept := *info.Energy
		kept.Users = only(kept.Users, who.Name)
		info.Energy = &kept
	}
	info.DataDir = ""
	if info.Host == nil {
		return info, nil
	}
	host, filter := *info.Host, a.Filter(ctx)
	host.Helpers = nil
	host.Tasks = slices.DeleteFunc(slices.Clone(host.Tasks), func(m api.HostMember) bool {
		rec, _ := tasks.Get(model.TaskID(m.Task))
		return rec == nil || !filter.Shows(rec)
	})
	info.Host = &host
	return info, filter.err
}

// only returns a map with the entry of one user.
func only[V any](all map[string]V, user string) map[string]V {
	out := map[string]V{}
	if v, ok := all[user]; ok {
		out[user] = v
	}
	return out
}
