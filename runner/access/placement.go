package access

import (
	"cmp"
	"context"

	"carma/containers"
	"carma/internal/lazyregexp"
	"carma/internal/suggest"
	"carma/runner/api"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

var (
	// namespaceName and accountName are names in a cluster.
	namespaceName = lazyregexp.New(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	accountName   = lazyregexp.New(`^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$`)
	// userNumber matches a user that a pod can have: a UID, or UID:GID.
	userNumber = lazyregexp.New(`^[0-9]{1,9}(:[0-9]{1,9})?$`)
)

// Find returns the tasks that a dependency refers to.
type Find func(ref string) ([]*record.Record, error)

// Placement returns a function that checks the namespace, the service account and the user
// of each task of a submission, and fills in the namespace.
func (a *Authorizer) Placement(ctx context.Context, who request.Caller, find Find) func(*api.Submit) error {
	allowed := map[string]error{}
	return func(s *api.Submit) error {
		switch {
		case a.namespaces == nil && s.Namespace != "":
			return request.Errorf(422, "--namespace %s: the tasks of this daemon are containers of one server, which has no namespaces; leave it out", s.Namespace)
		case a.namespaces == nil && s.ServiceAccount != "":
			return request.Errorf(422, "--service-account %s: the tasks of this daemon are containers of one server, not pods; leave it out", s.ServiceAccount)
		case a.namespaces == nil:
			return nil
		}
		if who.Subject != nil {
			if err := noneOfMachine(s); err != nil {
				return err
			}
		}
		own := a.namespaces.Namespace()
		if who.Subject != nil {
			own = who.Namespace
		}
		if s.Namespace = cmp.Or(s.Namespace, own); s.Namespace == "" {
			return request.Errorf(422, "no namespace: name one with --namespace, or in the context of your kubeconfig")
		}
		if err := checkPlace(a.namespaces, s); err != nil {
			return err
		}
		if who.Subject == nil {
			if a.MayServer(rights.AnyNamespace, who) || s.Namespace == own && s.ServiceAccount == "" {
				return nil
			}
			return request.Errorf(403, "--namespace, --service-account: users of the daemon's machine run their tasks in its namespace %s, without an account; with rights of your own in the cluster, come over TLS with your token (docs/kubernetes.md)", own)
		}
		err, known := allowed[s.Namespace]
		if !known {
			err = a.mayRunIn(ctx, who.Subject, s.Namespace)
			allowed[s.Namespace] = err
		}
		if err != nil {
			return err
		}
		return a.CheckDependencies(ctx, s.After, find)
	}
}

// checkPlace refuses a namespace in which carma makes no pods, and invalid names.
func checkPlace(driver containers.Namespaced, s *api.Submit) error {
	switch {
	case !namespaceName().MatchString(s.Namespace):
		return request.Errorf(422, "--namespace %q is not the name of a namespace: small letters, digits and dashes, at most 63", s.Namespace)
	case s.ServiceAccount != "" && !accountName().MatchString(s.ServiceAccount):
		return request.Errorf(422, "--service-account %q is not the name of a service account: small letters, digits, dots and dashes", s.ServiceAccount)
	case driver.Serves(s.Namespace):
		return nil
	}
	return request.Errorf(422, "--namespace: %v; the daemon serves these (kubernetes-namespaces)", suggest.OneOf(s.Namespace, driver.Served()))
}

// mayRunIn refuses a namespace in which a user may not create the objects of a task.
func (a *Authorizer) mayRunIn(ctx context.Context, who *containers.Subject, namespace string) error {
	for _, what := range createTasks {
		if err := a.mayInNamespace(ctx, who, in(what, namespace)); err != nil {
			return err
		}
	}
	return nil
}

// noneOfMachine refuses users and folders of the daemon's machine.
func noneOfMachine(s *api.Submit) error {
	for _, f := range []struct {
		asked bool
		why   string
	}{
		{len(s.Mounts) > 0, "-v: folders of the daemon's machine or of nodes are not for users of the cluster; put the data into the image, or fetch it"},
		{s.Bare(), "--conda, --venv, --host: a cluster's task runs in an image"},
		{s.Account != "", "--account: unix groups are the daemon's machine's; use of a cluster's users is counted for their namespace"},
		{len(s.Groups) > 0, "--group-add: groups of the daemon's machine are not for users of the cluster"},
		{s.User != "" && !userNumber().MatchString(s.User), "--user " + s.User + ": on a cluster a user is a number, like 1000:1000"},
	} {
		if f.asked {
			return request.Errorf(422, "%s", f.why)
		}
	}
	return nil
}

// CheckDependencies refuses dependencies on tasks that the caller of a request may not know
// of, as if these tasks did not exist.
func (a *Authorizer) CheckDependencies(ctx context.Context, after []api.Dependency, find Find) error {
	filter := a.Filter(ctx)
	for _, d := range after {
		if d.Task == "" {
			continue
		}
		recs, err := find(d.Task)
		if err != nil {
			return err
		}
		for _, rec := range recs {
			if filter.Shows(rec) {
				continue
			}
			if filter.err != nil {
				return filter.err
			}
			return request.Errorf(422, "--after: no task and no group %s; `carma ps -a` lists all", d.Task)
		}
	}
	return nil
}
