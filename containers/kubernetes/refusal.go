package kubernetes

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carma/containers"
)

// refusals are the texts with which a cluster refuses a pod or a claim, and the code and
// remedy of each. A refusal concerns one namespace only: nothing else has to wait, and
// the same pod is not tried again. Refusals that end when there is room are read before
// ([fullFault]).
var refusals = []struct{ says, code, remedy string }{
	{"must specify", "quota", "its ResourceQuota wants a limit: --host-mem and --cpus give it"},
	{"failed quota", "quota", "its ResourceQuota wants a limit: --host-mem and --cpus give it"},
	{"violates PodSecurity", "pod-security", ""}, // podSecurity
	{"error looking up service account", "account", "name a service account of the namespace with --service-account"},
	{"being terminated", "namespace", "the namespace is being deleted; submit to another one"},
	{"cannot create resource", "rights", "carma's own account lacks the Role of docs/kubernetes.md there"},
	{"", "admission", "an admission rule of the cluster refuses it"},
}

// failIn is [fail] for an object in a namespace.
func (c *client) failIn(ctx context.Context, what, namespace string, err error) error {
	if err == nil || ctx.Err() != nil {
		return fail(ctx, what, err)
	}
	msg := containers.CleanMessage(err.Error())
	if apierrors.IsNotFound(err) && namespace != c.ns.own {
		return fmt.Errorf("%s: %w", what, inNamespace("namespace", "there is no namespace "+namespace, "submit to another one"))
	}
	if full := fullFault(namespace, msg, err); full != nil {
		return fmt.Errorf("%s: %w", what, full)
	}
	if !apierrors.IsForbidden(err) || namespace == c.ns.own && strings.Contains(msg, "cannot create resource") {
		return fail(ctx, what, err) // where carma may not work in its own namespace, nothing works
	}
	for _, r := range refusals {
		if strings.Contains(msg, r.says) {
			_, why, ok := strings.Cut(msg, "is forbidden: ")
			if !ok {
				why = msg
			}
			if r.code == "pod-security" {
				r.remedy = podSecurity(why)
			}
			return fmt.Errorf("%s: %w", what, inNamespace(r.code, "namespace "+namespace+" does not take it: "+why, r.remedy))
		}
	}
	return fail(ctx, what, err)
}

// fullFault returns the fault of a namespace that takes no more now, or never takes this
// amount, or nil for another error.
func fullFault(namespace, msg string, err error) *containers.StartFault {
	switch {
	case apierrors.IsConflict(err) && strings.Contains(msg, "resourcequotas"):
		return namespaceFull("the cluster did not get to count it in a ResourceQuota, as others are counted there at the same time")
	case !apierrors.IsForbidden(err):
		return nil
	case strings.Contains(msg, "status unknown for quota"):
		return namespaceFull("the cluster has not counted yet what is used of a ResourceQuota")
	}
	if e, ok := readExceeded(msg); ok {
		return e.fault(namespace)
	}
	return nil
}

// inNamespace is a fault of one task's request. Its text is for people.
func inNamespace(code, cause, remedy string) *containers.StartFault {
	return &containers.StartFault{Scope: containers.ScopeTask, Code: code, Cause: cause, Remedy: remedy, Text: cause + "; " + remedy}
}

// podSecurity is the remedy for a violation of a Pod Security level.
func podSecurity(why string) string {
	var do []string
	if strings.Contains(why, "runAsNonRoot") || strings.Contains(why, "runAsUser") || strings.Contains(why, "capabilities") {
		do = append(do, "name a user that is not root, such as --user 1000:1000")
	}
	if strings.Contains(why, "hostPath") {
		do = append(do, "leave out -v")
	}
	if do == nil {
		return "its administrator sets the level"
	}
	return strings.Join(do, ", and ")
}
