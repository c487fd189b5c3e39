package kubernetes

import (
	"encoding/json"
	"net/http"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// objects contains the other objects of a cluster.
type objects struct {
	nodes    []corev1.Node
	incident []corev1.Event
	foreign  []resourcev1.ResourceClaim // claims of other namespaces
	leases   map[string]*coordinationv1.Lease
	// idle means that nodes do not start the pods that they get.
	idle bool
	// unscheduled means that no scheduler runs.
	unscheduled bool
	streams
}

func (c *cluster) serveObjects(mux *http.ServeMux) {
	c.leases = map[string]*coordinationv1.Lease{}
	const leases = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
	c.watched(mux, "/api/v1/nodes", "Node", "v1", func() map[string]metav1.Object {
		out := map[string]metav1.Object{}
		for i := range c.nodes {
			out[c.nodes[i].Name] = &c.nodes[i]
		}
		return out
	})
	c.watched(mux, "/apis/resource.k8s.io/v1/resourceslices", "ResourceSlice", "resource.k8s.io/v1", func() map[string]metav1.Object {
		out := map[string]metav1.Object{}
		for i := range c.slices {
			out[c.slices[i].Name] = &c.slices[i]
		}
		return out
	})
	c.watched(mux, "/apis/resource.k8s.io/v1/resourceclaims", "ResourceClaim", "resource.k8s.io/v1", func() map[string]metav1.Object {
		out := map[string]metav1.Object{}
		for i := range c.foreign {
			out[c.foreign[i].Namespace+"/"+c.foreign[i].Name] = &c.foreign[i]
		}
		for _, claim := range c.claims {
			out[claim.Namespace+"/"+claim.Name] = claim
		}
		return out
	})
	c.watched(mux, leases, "Lease", "coordination.k8s.io/v1", func() map[string]metav1.Object {
		out := map[string]metav1.Object{}
		for name, l := range c.leases {
			out[name] = l.DeepCopy()
		}
		return out
	})
	mux.HandleFunc("GET /api/v1/nodes/{name}", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, n := range c.nodes {
			if n.Name == r.PathValue("name") {
				answer(w, n)
				return
			}
		}
		notFound(w, "node")
	})
	mux.HandleFunc("GET /api/v1/namespaces/{ns}/events", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		list := corev1.EventList{}
		for _, e := range c.incident {
			if r.URL.Query().Get("fieldSelector") == "involvedObject.uid="+string(e.InvolvedObject.UID) {
				list.Items = append(list.Items, e)
			}
		}
		answer(w, list)
	})
	mux.HandleFunc("GET "+leases+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if l := c.leases[r.PathValue("name")]; l != nil {
			answer(w, l)
			return
		}
		notFound(w, "lease")
	})
	mux.HandleFunc("POST "+leases, c.putLease)
	mux.HandleFunc("PUT "+leases+"/{name}", c.putLease)
}

// putLease stores a Lease unless it was changed since the client read it.
func (c *cluster) putLease(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &coordinationv1.Lease{}
	if err := json.NewDecoder(r.Body).Decode(l); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	old := c.leases[l.Name]
	switch {
	case r.Method == http.MethodPost && old != nil:
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, "lease exists")
		return
	case r.Method == http.MethodPut && (old == nil || old.ResourceVersion != l.ResourceVersion):
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict, "lease was changed")
		return
	}
	c.version++
	l.ResourceVersion = strconv.Itoa(c.version)
	c.leases[l.Name] = l
	c.touch()
	answer(w, l)
}

// node returns a node that works, after the changes of edit.
func (c *cluster) node(name string, edit ...func(*corev1.Node)) {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.NodeInfo.BootID = "boot-" + name
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, e := range edit {
		e(&n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = append(c.nodes, n)
	c.touch()
}
