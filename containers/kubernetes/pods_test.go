package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

func (c *cluster) postPod(w http.ResponseWriter, r *http.Request) {
	pod := &corev1.Pod{}
	if err := json.NewDecoder(r.Body).Decode(pod); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	pod.Namespace = r.PathValue("ns")
	if c.admit != nil {
		if code, text := c.admit(pod); text != "" {
			refuse(w, code, metav1.StatusReasonForbidden, `pods "`+pod.Name+`" is forbidden: `+text)
			return
		}
	}
	if c.refusesNew(w, "pods", pod.Name) {
		return
	}
	if c.pods[podKey(pod)] != nil {
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, "pods "+pod.Name+" already exists")
		return
	}
	c.made++
	pod.UID, pod.CreationTimestamp = types.UID(fmt.Sprintf("uid-%d", c.made)), metav1.Now()
	pod.Status.Phase = corev1.PodPending
	c.pods[podKey(pod)] = pod
	c.tell("ADDED", pod)
	c.sync(pod)
	answer(w, pod)
}

// refusesNew refuses a new object if the test has set a refusal.
func (c *cluster) refusesNew(w http.ResponseWriter, resource, name string) bool {
	if c.refuse == nil {
		return false
	}
	code, text := c.refuse(resource)
	switch code {
	case http.StatusForbidden:
		refuse(w, code, metav1.StatusReasonForbidden, resource+` "`+name+`" is forbidden: `+text)
	case http.StatusConflict:
		refuse(w, code, metav1.StatusReasonConflict, text)
	}
	return code != 0
}

// key returns the tests' name of an object: its name, prefixed with its namespace if that
// differs from the tests' own.
func key(in, name string) string {
	if in == namespace || in == "" {
		return name
	}
	return in + "/" + name
}

func keyOf(r *http.Request) string { return key(r.PathValue("ns"), r.PathValue("name")) }

func podKey(pod *corev1.Pod) string { return key(pod.Namespace, pod.Name) }

// within reports whether the request is about this namespace or all namespaces.
func within(r *http.Request, namespace string) bool {
	ns := r.PathValue("ns")
	return ns == "" || ns == namespace
}

func (c *cluster) getPod(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pod := c.pods[keyOf(r)]; pod != nil {
		answer(w, pod)
		return
	}
	notFound(w, "pods "+r.PathValue("name"))
}

func (c *cluster) listPods(w http.ResponseWriter, r *http.Request) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	if r.URL.Query().Get("watch") != "" {
		c.watch(w, r, selector)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	list := corev1.PodList{Items: []corev1.Pod{}}
	for _, name := range slices.Sorted(maps.Keys(c.pods)) {
		pod := c.pods[name]
		if node, ok := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "spec.nodeName="); ok && pod.Spec.NodeName != node {
			continue
		}
		if within(r, pod.Namespace) && selector.Matches(labels.Set(pod.Labels)) {
			list.Items = append(list.Items, *pod)
		}
	}
	answer(w, list)
}

// watch streams the further events.
func (c *cluster) watch(w http.ResponseWriter, r *http.Request, selector labels.Selector) {
	c.mu.Lock()
	next := len(c.events) // read before the answer, because the client relies on all later events
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		c.mu.Lock()
		events, seen, changed := c.events[next:], c.seen[next:], c.changed
		next = len(c.events)
		c.mu.Unlock()
		for i, e := range events {
			in, text, _ := strings.Cut(seen[i], " ")
			if set, _ := labels.ConvertSelectorToLabelsMap(text); within(r, in) && selector.Matches(set) {
				_ = json.NewEncoder(w).Encode(e)
			}
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (c *cluster) patchPod(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pod := c.pods[keyOf(r)]
	if pod == nil {
		notFound(w, "pods "+r.PathValue("name"))
		return
	}
	changed, ok := patched(w, r, pod)
	if !ok {
		return
	}
	*pod = *changed
	c.tell("MODIFIED", pod)
	answer(w, pod)
	c.sync(pod)
	c.gone(pod)
}

// deletePod handles the request to delete a pod.
func (c *cluster) deletePod(w http.ResponseWriter, r *http.Request) {
	var options metav1.DeleteOptions
	_ = json.NewDecoder(r.Body).Decode(&options)
	c.mu.Lock()
	defer c.mu.Unlock()
	pod := c.pods[keyOf(r)]
	switch {
	case pod == nil:
		notFound(w, "pods "+r.PathValue("name"))
		return
	case options.Preconditions != nil && options.Preconditions.UID != nil && *options.Preconditions.UID != pod.UID:
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict, "uid")
		return
	}
	grace := *pod.Spec.TerminationGracePeriodSeconds
	if options.GracePeriodSeconds != nil {
		grace = *options.GracePeriodSeconds
	}
	if pod.Spec.NodeName == "" {
		grace = 0
	}
	if pod.DeletionTimestamp == nil { // a real kubelet also ignores a second deletion
		due := metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second).Truncate(time.Second))
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &due, &grace
		c.tell("MODIFIED", pod)
		c.sync(pod)
	}
	answer(w, pod)
	c.gone(pod)
}

// patched returns an object after the JSON merge patch of a request. ok is false if the patch
// was refused; then patched has answered the request.
func patched[T metav1.Object](w http.ResponseWriter, r *http.Request, of T) (changed T, ok bool) {
	var patch, whole map[string]any
	if err := json.NewDecoder(r.Body).Decode(&patch); err != nil || r.Header.Get("Content-Type") != string(types.MergePatchType) {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "patch")
		return changed, false
	}
	b, _ := json.Marshal(of)
	_ = json.Unmarshal(b, &whole)
	merge(whole, patch)
	b, _ = json.Marshal(whole)
	_ = json.Unmarshal(b, &changed)
	if changed.GetUID() != of.GetUID() || changed.GetResourceVersion() != of.GetResourceVersion() {
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict, "uid or version")
		return changed, false
	}
	return changed, true
}
