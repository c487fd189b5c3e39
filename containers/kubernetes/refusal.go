package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"carma/containers"
)

// refusals lists the texts with which a cluster refuses a pod or a claim, with the code and
// remedy of each. A refusal concerns one namespace only. Tasks of other namespaces need not
// wait, and carma does not try the same pod again. [fullFault] recognizes refusals that end
// when there is room, and is called before.
var refusals = []struct{ says, code, remedy string }{
	{"must specify", "quota", "its ResourceQuota wants a limit: --host-mem and --cpus give it"},
	{"failed quota", "quota", "its ResourceQuota wants a limit: --host-mem and --cpus give it"},
	{"violates PodSecurity", "pod-security", ""}, // the remedy comes from podSecurity
	{"error looking up service account", "account", "name a service account of the namespace with --service-account"},
	{"being terminated", "namespace", "the namespace is being deleted; submit to another one"},
	{"cannot create resource", "rights", "carma's own account lacks the Role of docs/kubernetes.md there"},
	{"", "admission", "an admission rule of the cluster refuses it"},
}

// failIn is [fail] for an object in a namespace. It returns a start fault for a refusal.
func (c *client) failIn(ctx context.Context, what, namespace string, err error) error {
	if err == nil || ctx.Err() != nil {
		return fail(ctx, what, err)
	}
	msg := containers.CleanMessage(err.Error())
	if apierrors.IsNotFound(err) && namespace != c.ns.Own() {
		return fmt.Errorf("%s: %w", what, inNamespace("namespace", "there is no namespace "+namespace, "submit to another one"))
	}
	if full := fullFault(namespace, msg, err); full != nil {
		return fmt.Errorf("%s: %w", what, full)
	}
	if !apierrors.IsForbidden(err) || namespace == c.ns.Own() && strings.Contains(msg, "cannot create resource") {
		return fail(ctx, what, err) // if carma has no rights in its own namespace, no task can start
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

// fullFault returns the fault of a namespace that accepts no more at the moment, or that never
// accepts this amount. It returns nil for any other error.
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

// inNamespace returns the fault of one task's request. cause and remedy are shown to users.
func inNamespace(code, cause, remedy string) *containers.StartFault {
	return &containers.StartFault{Scope: containers.ScopeTask, Code: code, Cause: cause, Remedy: remedy, Text: cause + "; " + remedy}
}

// podSecurity returns the remedy for a violation of a Pod Security level.
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

// exceeded is an apiserver's message about a pod or claim that exceeds a ResourceQuota: the
// quota's name, and for each exhausted resource the requested amount, the used amount and the
// limit.
type exceeded struct {
	quota string
	short []shortage
}

type shortage struct{ resource, wants, used, hard string }

// readExceeded parses such a message. It returns false for another message.
func readExceeded(msg string) (e exceeded, ok bool) {
	_, rest, _ := strings.Cut(msg, "exceeded quota: ")
	name, rest, named := strings.Cut(rest, ", requested: ")
	wants, rest, _ := strings.Cut(rest, ", used: ")
	used, hard, told := strings.Cut(rest, ", limited: ")
	if !named || !told {
		return e, false
	}
	e.quota = name
	has, most := amounts(used), amounts(hard)
	for pair := range strings.SplitSeq(wants, ",") {
		what, amount, _ := strings.Cut(pair, "=")
		e.short = append(e.short, shortage{what, amount, has[what], most[what]})
	}
	return e, true
}

// amounts reads pairs such as pods=1,requests.memory=2Gi.
func amounts(list string) map[string]string {
	out := map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		what, amount, _ := strings.Cut(pair, "=")
		out[what] = amount
	}
	return out
}

// never reports whether the object alone exceeds the limit.
func (s shortage) never() bool {
	wants, err := resource.ParseQuantity(s.wants)
	hard, err2 := resource.ParseQuantity(s.hard)
	return err == nil && err2 == nil && wants.Cmp(hard) > 0
}

// fault returns the start fault. A request above the limit itself can never start. Any other
// request waits until there is room.
func (e exceeded) fault(namespace string) *containers.StartFault {
	if i := slices.IndexFunc(e.short, shortage.never); i >= 0 {
		s := e.short[i]
		return inNamespace("quota", fmt.Sprintf("namespace %s can never take it: its ResourceQuota %s allows %s of %s in all, and the task wants %s", namespace, e.quota, s.hard, s.resource, s.wants), lessOf(s.resource))
	}
	var short []string
	for _, s := range e.short {
		short = append(short, fmt.Sprintf("%s of %s %s are used, and the task wants %s", s.used, s.hard, s.resource, s.wants))
	}
	return namespaceFull(fmt.Sprintf("its ResourceQuota %s is full: %s", e.quota, strings.Join(short, "; ")))
}

// lessOf returns the advice how to request less of a resource that a quota counts.
func lessOf(counted string) string {
	switch {
	case strings.HasSuffix(counted, "memory"):
		return "ask for less with --host-mem, or ask its administrator for more"
	case strings.HasSuffix(counted, "cpu"):
		return "ask for less with --cpus, or ask its administrator for more"
	case strings.Contains(counted, ".deviceclass."):
		return "ask for fewer GPUs, or ask its administrator for more"
	}
	return "ask its administrator for more, or submit to another one"
}

// namespaceFull returns a fault that does not count against the task: the task waits until its
// namespace accepts it.
func namespaceFull(cause string) *containers.StartFault {
	return &containers.StartFault{Scope: containers.ScopeNamespace, Code: "quota", Cause: cause, Remedy: "it starts when there is room", Text: cause}
}
