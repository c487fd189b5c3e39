package kubernetes

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// streams serves lists and watches of the objects that carma watches for the whole cluster:
// nodes, slices, claims, Leases. Code that changes such an object must call touch.
type streams struct {
	kinds map[string]*changes
	// oldest is the oldest resourceVersion that is kept. A watch from an earlier version is
	// refused.
	oldest int
	// listsOnly means that a watch cannot begin with the existing objects, as before Kubernetes
	// 1.32.
	listsOnly bool
	// whole counts how often all objects of a kind were read.
	whole map[string]int
}

// changes record the history of the objects of a kind.
type changes struct {
	kind, version string
	// now returns the present objects by key.
	now    func() map[string]metav1.Object
	was    map[string]string // each as JSON
	since  map[string]int    // the version of each
	labels map[string]labels.Set
	events []change
}

// about reports whether a request is about the object with this key.
func about(r *http.Request, key string) bool {
	ns, _, namespaced := strings.Cut(key, "/")
	return !namespaced || within(r, ns)
}

type change struct {
	version int
	key     string
	what    string
	labels  labels.Set
	raw     json.RawMessage
}

// watched serves a kind at a path. A path with a namespace serves that namespace's
// objects.
func (c *cluster) watched(mux *http.ServeMux, path, kind, version string, now func() map[string]metav1.Object) {
	if c.kinds == nil {
		c.kinds, c.whole = map[string]*changes{}, map[string]int{}
	}
	k := &changes{kind: kind, version: version, now: now, was: map[string]string{}, since: map[string]int{}, labels: map[string]labels.Set{}}
	c.kinds[kind] = k
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
		switch {
		case err != nil:
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		case r.URL.Query().Get("watch") != "":
			c.streamOf(w, r, k, selector)
		default:
			c.listOf(w, r, k, selector)
		}
	})
}

// touch records all changes. The caller holds c.mu.
func (c *cluster) touch() {
	for _, name := range slices.Sorted(maps.Keys(c.kinds)) {
		c.kinds[name].note(c)
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

func (k *changes) note(c *cluster) {
	now := k.now()
	for _, key := range slices.Sorted(maps.Keys(now)) {
		o := now[key]
		o.SetResourceVersion("")
		b, _ := json.Marshal(o)
		was, there := k.was[key]
		if was == string(b) {
			continue
		}
		c.version++
		o.SetResourceVersion(strconv.Itoa(c.version))
		k.was[key], k.since[key], k.labels[key] = string(b), c.version, o.GetLabels()
		k.events = append(k.events, change{c.version, key, map[bool]string{false: "ADDED", true: "MODIFIED"}[there], o.GetLabels(), k.raw(key)})
	}
	for _, key := range slices.Sorted(maps.Keys(k.was)) {
		if now[key] == nil {
			c.version++
			k.since[key] = c.version
			k.events = append(k.events, change{c.version, key, "DELETED", k.labels[key], k.raw(key)})
			delete(k.was, key)
			delete(k.since, key)
		}
	}
}

// raw returns the JSON of an object.
func (k *changes) raw(key string) json.RawMessage {
	var o map[string]any
	_ = json.Unmarshal([]byte(k.was[key]), &o)
	o["kind"], o["apiVersion"] = k.kind, k.version
	o["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(k.since[key])
	b, _ := json.Marshal(o)
	return b
}

func (c *cluster) listOf(w http.ResponseWriter, r *http.Request, k *changes, selector labels.Selector) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.note(c)
	c.whole[k.kind]++
	items := []json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(k.was)) {
		if about(r, key) && selector.Matches(k.labels[key]) {
			items = append(items, k.raw(key))
		}
	}
	answer(w, map[string]any{"kind": k.kind + "List", "apiVersion": k.version, "metadata": map[string]string{"resourceVersion": strconv.Itoa(c.version)}, "items": items})
}

func (c *cluster) streamOf(w http.ResponseWriter, r *http.Request, k *changes, selector labels.Selector) {
	initial := r.URL.Query().Get("sendInitialEvents") == "true"
	c.mu.Lock()
	k.note(c)
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	var first []change
	switch {
	case initial && c.listsOnly:
		c.mu.Unlock()
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden")
		return
	case !initial && from < c.oldest:
		c.mu.Unlock()
		refuse(w, http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
		return
	case initial:
		c.whole[k.kind]++
		for _, key := range slices.Sorted(maps.Keys(k.was)) {
			first = append(first, change{what: "ADDED", key: key, labels: k.labels[key], raw: k.raw(key)})
		}
		first = append(first, k.bookmark(c.version, `{"k8s.io/initial-events-end":"true"}`))
		from = c.version
	}
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	send := func(all []change) {
		for _, e := range all {
			if e.what == "BOOKMARK" || about(r, e.key) && selector.Matches(e.labels) {
				_ = json.NewEncoder(w).Encode(map[string]any{"type": e.what, "object": e.raw})
			}
		}
		w.(http.Flusher).Flush()
	}
	send(first)
	for {
		c.mu.Lock()
		changed, events := c.changed, k.events
		c.mu.Unlock()
		next, _ := slices.BinarySearchFunc(events, from+1, func(e change, v int) int { return e.version - v })
		send(events[next:])
		if len(events) > 0 {
			from = max(from, events[len(events)-1].version)
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (k *changes) bookmark(version int, annotations string) change {
	return change{version: version, what: "BOOKMARK", raw: json.RawMessage(strings.NewReplacer("KIND", k.kind, "GV", k.version, "RV", strconv.Itoa(version), "{}", annotations).Replace(
		`{"kind":"KIND","apiVersion":"GV","metadata":{"resourceVersion":"RV","annotations":{}}}`))}
}

// bookmarks sends the present version to all watches.
func (c *cluster) bookmarks() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.touch()
	c.version++
	for _, k := range c.kinds {
		k.events = append(k.events, k.bookmark(c.version, "null"))
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// forget drops the history up to now.
func (c *cluster) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.oldest = c.version
}

// alter changes objects, and notifies the watches.
func (c *cluster) alter(edit func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	edit()
	c.touch()
}
