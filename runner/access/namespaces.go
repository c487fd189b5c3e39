package access

import (
	"context"
	"net/http"
	"strings"

	"carma/containers"
	"carma/runner/api"
	"carma/runner/record"
	"carma/runner/request"
)

// Accesses in the cluster that users need for actions on the tasks of a namespace. A task
// counts as a pod also before its pod exists and after it is gone.
var (
	GetPods    = containers.Access{Verb: "get", Resource: "pods"}
	GetLogs    = containers.Access{Verb: "get", Resource: "pods", Subresource: "log"}
	DeletePods = containers.Access{Verb: "delete", Resource: "pods"}
	ExecPods   = containers.Access{Verb: "create", Resource: "pods", Subresource: "exec"}
	AttachPods = containers.Access{Verb: "create", Resource: "pods", Subresource: "attach"}
	// createTasks are the accesses that a submission needs.
	createTasks = []containers.Access{{Verb: "create", Resource: "pods"}, {Verb: "create", Group: "resource.k8s.io", Resource: "resourceclaims"}}
)

// in returns an access in a namespace.
func in(what containers.Access, namespace string) containers.Access {
	what.Namespace = namespace
	return what
}

// NamespaceOf returns the namespace of a task's containers, or "" if the engine has none.
func (a *Authorizer) NamespaceOf(rec *record.Record) string {
	if rec.Submit.Namespace != "" {
		return rec.Submit.Namespace
	}
	if a.namespaces != nil {
		return a.namespaces.Namespace() // for a task of an older program
	}
	return ""
}

// Bearer returns the user of the cluster whose token a request has.
func (a *Authorizer) Bearer(req *http.Request) (request.Caller, error) {
	kind, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(kind, "Bearer") || token == "" {
		return request.Caller{}, request.Errorf(401, "no token: over TLS, carma asks for a bearer token of the cluster, in the header Authorization; kubectl create token makes one for a service account")
	}
	home := req.Header.Get(api.NamespaceHeader)
	if home != "" && !namespaceName().MatchString(home) {
		return request.Caller{}, request.Errorf(422, "header %s: %q is not the name of a namespace", api.NamespaceHeader, home)
	}
	s, err := a.reviews.whose(req.Context(), token)
	if err != nil {
		return request.Caller{}, err
	}
	return request.SubjectCaller(s, home), nil
}

// AuthorizePods refuses an access to the pods of tasks that the caller of a request, a user
// of the cluster, may not have. If the caller may not know of one of the tasks, the error
// is hidden.
func (a *Authorizer) AuthorizePods(ctx context.Context, who request.Caller, what containers.Access, hidden error, recs ...*record.Record) error {
	asked, filter := map[string]bool{}, a.Filter(ctx)
	for _, rec := range recs {
		namespace := a.NamespaceOf(rec)
		if asked[namespace] {
			continue
		}
		asked[namespace] = true
		if !filter.Shows(rec) {
			if filter.err != nil {
				return filter.err
			}
			return hidden
		}
		if err := a.mayInNamespace(ctx, who.Subject, in(what, namespace)); err != nil {
			return err
		}
	}
	return nil
}

// mayInNamespace refuses an access that a user of the cluster does not have.
func (a *Authorizer) mayInNamespace(ctx context.Context, who *containers.Subject, what containers.Access) error {
	yes, err := a.reviews.may(ctx, who, what)
	if err == nil && !yes {
		err = request.Errorf(403, "you may not %s; you are %s", accessText(what), who.Name)
	}
	return err
}

// accessText describes an access in words, with the kubectl command that shows it.
func accessText(a containers.Access) string {
	what := a.Resource
	if a.Group != "" {
		what += "." + a.Group
	}
	flag := ""
	if a.Subresource != "" {
		what, flag = what+"/"+a.Subresource, " --subresource="+a.Subresource
	}
	return a.Verb + " " + what + " in namespace " + a.Namespace + " (kubectl auth can-i " + a.Verb + " " + strings.Split(what, "/")[0] + flag + " -n " + a.Namespace + ")"
}
