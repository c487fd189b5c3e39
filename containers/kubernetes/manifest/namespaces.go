package manifest

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AllNamespaces stands for all namespaces of the cluster in the list of namespaces that a
// daemon serves.
const AllNamespaces = "*"

// DaemonKey is the label that contains the namespace of the daemon that made a pod or a claim.
// Only one daemon works in a namespace, so the label distinguishes two daemons that serve the
// same namespaces.
const DaemonKey = "carma.dev/daemon"

// Namespaces contains the namespaces that a daemon serves, and defines the names of its pods in
// them.
type Namespaces struct {
	own   string   // the daemon's
	scope []string // namespaces of its pods, or one empty name for all namespaces
}

// NewNamespaces returns the namespaces of a daemon that has one of its own and serves
// others, see [AllNamespaces].
func NewNamespaces(own string, others []string) *Namespaces {
	if slices.Contains(others, AllNamespaces) {
		return &Namespaces{own: own, scope: []string{metav1.NamespaceAll}}
	}
	n := &Namespaces{own: own, scope: []string{own}}
	for _, other := range others {
		if !slices.Contains(n.scope, other) {
			n.scope = append(n.scope, other)
		}
	}
	return n
}

// Own returns the daemon's own namespace.
func (n *Namespaces) Own() string { return n.own }

// Scope lists the namespaces that are read. It contains one empty name if one request reads all
// namespaces.
func (n *Namespaces) Scope() []string { return n.scope }

// Serves reports whether pods may be made in a namespace.
func (n *Namespaces) Serves(namespace string) bool {
	return n.scope[0] == metav1.NamespaceAll || slices.Contains(n.scope, namespace)
}

// Served lists the namespaces in which pods may be made, the daemon's first, or returns nil if
// pods may be made in all namespaces.
func (n *Namespaces) Served() []string {
	if n.scope[0] == metav1.NamespaceAll {
		return nil
	}
	return slices.Clone(n.scope)
}

// Made reports whether this daemon made an object. Older versions set no label with the
// daemon's namespace, and made objects only in that namespace.
func (n *Namespaces) Made(namespace string, labels map[string]string) bool {
	if labels[ManagedBy] != Owner {
		return false
	}
	by, ok := labels[DaemonKey]
	return ok && by == n.own || !ok && namespace == n.own
}

// Home returns the namespace and name of a pod. An empty namespace is replaced by the daemon's.
func (n *Namespaces) Home(namespace, name string) types.NamespacedName {
	if namespace == "" {
		namespace = n.own
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// HomeOf returns a pod's namespace and name.
func HomeOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// IDOf returns a container's id. It begins with the pod's uid, because a later pod may have the
// same name.
func IDOf(pod *corev1.Pod) string {
	return string(pod.UID) + "." + pod.Namespace + "/" + pod.Name
}

// Split splits an id. For an unknown form it returns a name that no pod can have. Ids of older
// versions contain no namespace, and mean the daemon's.
func (n *Namespaces) Split(id string) (uid string, at types.NamespacedName) {
	uid, name, _ := strings.Cut(id, ".")
	namespace, rest, ok := strings.Cut(name, "/")
	if !ok {
		namespace, rest = "", name
	}
	return uid, n.Home(namespace, rest)
}

// Short returns a short form of an id for messages. It contains the namespace unless that is
// the daemon's.
func (n *Namespaces) Short(id string) string {
	_, at := n.Split(id)
	switch {
	case at.Name == "":
		return id
	case at.Namespace == n.own:
		return at.Name
	}
	return at.String()
}

// ClusterLabels returns the labels whose key and value are valid in Kubernetes.
func (n *Namespaces) ClusterLabels(all map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range all {
		if Selectable(k, v) {
			out[k] = v
		}
	}
	out[ManagedBy], out[DaemonKey] = Owner, n.own
	return out
}
