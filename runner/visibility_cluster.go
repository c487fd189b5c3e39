package runner

import (
	"context"
	"slices"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/engine"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

// Accesses in the cluster that users need for actions on the tasks of a namespace. A task
// counts as a pod also before its pod exists and after it is gone.
var (
	mayRun    = []containers.Access{{Verb: "create", Resource: "pods"}, {Verb: "create", Group: "resource.k8s.io", Resource: "resourceclaims"}}
	maySee    = containers.Access{Verb: "get", Resource: "pods"}
	mayLogs   = containers.Access{Verb: "get", Resource: "pods", Subresource: "log"}
	mayEnd    = containers.Access{Verb: "delete", Resource: "pods"}
	mayExec   = containers.Access{Verb: "create", Resource: "pods", Subresource: "exec"}
	mayAttach = containers.Access{Verb: "create", Resource: "pods", Subresource: "attach"}
)

// in returns an access in a namespace.
func in(what containers.Access, namespace string) containers.Access {
	what.Namespace = namespace
	return what
}

// namespaceOf returns the namespace of a task's containers, or "" if the engine has none.
func (r *Runner) namespaceOf(rec *record.Record) string {
	if rec.Submit.Namespace != "" {
		return rec.Submit.Namespace
	}
	if d, ok := engine.As[containers.Namespaced](r.Driver); ok {
		return d.Namespace() // for a task of an older program
	}
	return ""
}

// visibility decides which tasks a caller may know of. A user of a cluster may know of
// the tasks in namespaces where the user may get pods. Everybody else may know of all
// tasks.
type visibility struct {
	r    *Runner
	ctx  context.Context
	who  *containers.Subject // nil means all
	seen map[string]bool
	err  error // why the cluster could not be asked; then no task is visible
}

func (r *Runner) sight(ctx context.Context) *visibility {
	who, _ := request.CallerFrom(ctx)
	return &visibility{r: r, ctx: ctx, who: who.Subject, seen: map[string]bool{}}
}

// of reports whether the caller may know of a task.
func (s *visibility) of(rec *record.Record) bool {
	if s.who == nil {
		return true
	}
	namespace := s.r.namespaceOf(rec)
	yes, known := s.seen[namespace]
	if !known && s.err == nil {
		yes, s.err = s.r.reviews.may(s.ctx, s.who, in(maySee, namespace))
		s.seen[namespace] = yes
	}
	return yes && s.err == nil
}

// infoFor removes from info what a caller may not see: a user of a cluster sees nothing of
// other users, and no task that they may not know of.
func (r *Runner) infoFor(ctx context.Context, info api.Info) (api.Info, error) {
	who, _ := request.CallerFrom(ctx)
	if r.mayServer(rights.SeeUse, who) {
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
	host, sight := *info.Host, r.sight(ctx)
	host.Helpers = nil
	host.Tasks = slices.DeleteFunc(slices.Clone(host.Tasks), func(m api.HostMember) bool {
		rec, _ := r.records.Get(model.TaskID(m.Task))
		return rec == nil || !sight.of(rec)
	})
	info.Host = &host
	return info, sight.err
}

// only returns a map with the entry of one user.
func only[V any](all map[string]V, user string) map[string]V {
	out := map[string]V{}
	if v, ok := all[user]; ok {
		out[user] = v
	}
	return out
}
