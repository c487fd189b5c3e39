package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"carma/containers"
)

// exceeded is the content of an apiserver's message about a pod or claim that exceeds a
// ResourceQuota: the quota's name, and for each exhausted resource the object's request,
// the present use and the limit.
type exceeded struct {
	quota string
	short []shortage
}

type shortage struct{ resource, wants, used, hard string }

// readExceeded parses such a message. It returns false for any other message.
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

// never: the object alone is more than there may be.
func (s shortage) never() bool {
	wants, err := resource.ParseQuantity(s.wants)
	hard, err2 := resource.ParseQuantity(s.hard)
	return err == nil && err2 == nil && wants.Cmp(hard) > 0
}

// fault returns the resulting start fault. A request above the quota itself can never
// start; any other waits until there is room.
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

// lessOf says how to ask for less of a resource that a quota counts.
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

// namespaceFull is a fault of nobody: the task waits until its namespace takes it.
func namespaceFull(cause string) *containers.StartFault {
	return &containers.StartFault{Scope: containers.ScopeNamespace, Code: "quota", Cause: cause, Remedy: "it starts when there is room", Text: cause}
}
