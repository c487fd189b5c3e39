package kubernetes

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// AllNamespaces, in [Options].Namespaces, stands for every namespace of the cluster.
const AllNamespaces = "*"

// daemonKey is the label with the namespace of the daemon that made a pod or a claim.
// Only one daemon works in a namespace, so the label distinguishes two daemons that serve
// the same namespaces.
const daemonKey = "carma.dev/daemon"

// namespaces are the namespaces that a daemon serves, and how its pods are named in them.
type namespaces struct {
	own   string   // the daemon's
	scope []string // namespaces in which its pods are; one that is empty: all
}

// scopeOf are the namespaces that are read: one request for all, or one for each.
func scopeOf(own string, others []string) []string {
	if slices.Contains(others, AllNamespaces) {
		return []string{metav1.NamespaceAll}
	}
	out := []string{own}
	for _, n := range others {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// Namespace is the daemon's own.
func (d *Driver) Namespace() string { return d.c.ns.own }

// Serves reports whether pods may be made in a namespace.
func (d *Driver) Serves(namespace string) bool {
	return d.c.ns.scope[0] == metav1.NamespaceAll || slices.Contains(d.c.ns.scope, namespace)
}

// Served lists the namespaces in which pods may be made, the daemon's first, or is nil if
// pods may be made in all.
func (d *Driver) Served() []string {
	if d.c.ns.scope[0] == metav1.NamespaceAll {
		return nil
	}
	return slices.Clone(d.c.ns.scope)
}

// made reports whether this daemon made an object. An object of an older program has no
// label of its daemon, and is in the daemon's namespace.
func (n *namespaces) made(namespace string, labels map[string]string) bool {
	if labels[managedBy] != ours {
		return false
	}
	by, ok := labels[daemonKey]
	return ok && by == n.own || !ok && namespace == n.own
}

// home is a pod's place in the cluster; an empty namespace is the daemon's.
func (n *namespaces) home(namespace, name string) types.NamespacedName {
	if namespace == "" {
		namespace = n.own
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func homeOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// pods is the path of a namespace's pods, or of one if it has a name.
func (c *client) pods(r *rest.Request, at types.NamespacedName) *rest.Request {
	r = r.Namespace(at.Namespace).Resource("pods")
	if at.Name != "" {
		r = r.Name(at.Name)
	}
	return r
}

// claims is the path of the claim that has a pod's name.
func (c *client) claims(r *rest.Request, at types.NamespacedName) *rest.Request {
	return r.Namespace(at.Namespace).Resource("resourceclaims").Name(at.Name)
}

// idOf is a container's id. It begins with what no other pod has, ever: pods may
// have the name of an earlier one.
func idOf(pod *corev1.Pod) string {
	return string(pod.UID) + "." + pod.Namespace + "/" + pod.Name
}

// split splits an id; an unknown form gives a name that no pod has. Ids of older programs
// have no namespace: theirs was the daemon's.
func (n *namespaces) split(id string) (uid string, at types.NamespacedName) {
	uid, name, _ := strings.Cut(id, ".")
	namespace, rest, ok := strings.Cut(name, "/")
	if !ok {
		namespace, rest = "", name
	}
	return uid, n.home(namespace, rest)
}

// short returns an id for people: it contains the namespace unless it is the daemon's.
func (n *namespaces) short(id string) string {
	_, at := n.split(id)
	switch {
	case at.Name == "":
		return id
	case at.Namespace == n.own:
		return at.Name
	}
	return at.String()
}
