package kubernetes

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"carma/containers/kubernetes/manifest"
)

// hints delivers the present state of a pod to its subscribers. One watch serves all pods of a
// namespace, or of all namespaces. After a gap in the watch the subscribers read the pod
// themselves.
type hints struct {
	c     *client
	turns turns // turns to read a pod without an event

	mu      sync.Mutex
	waiting map[types.NamespacedName]map[*hint]bool // subscribers by pod
	running map[string]bool                         // namespaces with a running watch
}

// hint is one subscriber to a pod's changes.
type hint struct {
	changed chan struct{} // has a token if the state has changed

	mu     sync.Mutex
	pod    *corev1.Pod // last state from the watch
	read   bool        // the pod must be read, because an event may be missing
	missed bool        // an event may be missing since [hint.leftHere]
}

// tell stores the new state of the pod. nil means that the pod must be read.
func (w *hint) tell(pod *corev1.Pod) {
	w.mu.Lock()
	w.pod, w.read, w.missed = pod, w.read || pod == nil, w.missed || pod == nil
	w.mu.Unlock()
	poke(w.changed)
}

// take returns the last state from the watch, or nil if the pod must be read.
func (w *hint) take() (pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.read {
		pod = w.pod
	}
	w.read = false
	return pod
}

// takeAfter is [hint.take] for a caller that has the state seen. It returns nil if the watch's
// last state is not newer.
func (w *hint) takeAfter(seen *corev1.Pod) *corev1.Pod {
	if pod := w.take(); pod != nil && pod.UID == seen.UID && newer(pod, seen) {
		return pod
	}
	return nil
}

// leftHere records that the caller has processed all events up to the last take.
func (w *hint) leftHere() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.missed = w.read
}

// since returns the present state of a pod, or nil if it is unknown. It takes the last event
// since the pod was left, or pod if there was none.
func (w *hint) since(pod *corev1.Pod) *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.missed, w.pod != nil && w.pod.UID != pod.UID:
		return nil
	case w.pod != nil && newer(w.pod, pod):
		return w.pod
	}
	return pod
}

// again is the delay before a broken watch is opened again. maxQuiet is the longest time that a
// subscriber waits for an event before it asks for a turn to read the pod. quietEvery is the
// time between two such readings of all subscribers. The readings find nothing new unless a
// watch has lost an event.
const (
	again      = 500 * time.Millisecond
	maxQuiet   = 20 * time.Second
	quietEvery = time.Second / 10
)

// subscribe subscribes to the events of a pod. The caller must subscribe, then read the pod,
// then wait for events.
func (h *hints) subscribe(pod types.NamespacedName) (w *hint, leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w = &hint{changed: make(chan struct{}, 1)}
	if h.waiting == nil {
		h.waiting = map[types.NamespacedName]map[*hint]bool{}
	}
	if h.waiting[pod] == nil {
		h.waiting[pod] = map[*hint]bool{}
	}
	h.waiting[pod][w] = true
	for _, namespace := range h.c.ns.Scope() {
		if h.running[namespace] || h.c.ctx.Err() != nil {
			continue
		}
		if h.running == nil {
			h.running = map[string]bool{}
		}
		h.running[namespace] = true
		h.c.tasks.Go(func() { h.run(namespace) })
	}
	return w, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waiting[pod], w)
		if len(h.waiting[pod]) == 0 {
			delete(h.waiting, pod)
		}
	}
}

// run reads a namespace's events until the driver is closed or nobody subscribes.
func (h *hints) run(namespace string) {
	for {
		h.watch(h.c.ctx, namespace)
		h.wakeAll()
		select {
		case <-h.c.ctx.Done():
			return
		case <-time.After(again):
		}
		if h.idle(namespace) {
			return
		}
	}
}

// idle ends a namespace's watch if it has no subscribers.
func (h *hints) idle(namespace string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running[namespace] = len(h.waiting) > 0
	return !h.running[namespace]
}

// watch reads one watch to its end. The apiserver ends each watch after some minutes.
func (h *hints) watch(ctx context.Context, namespace string) {
	events, err := h.c.pods(h.c.core.Get(), types.NamespacedName{Namespace: namespace}).VersionedParams(&metav1.ListOptions{
		Watch: true, LabelSelector: manifest.ManagedBy + "=" + manifest.Owner,
	}, parameters).Watch(ctx)
	if err != nil {
		return
	}
	defer events.Stop()
	// The watch does not contain events from before its beginning.
	h.wakeAll()
	for e := range events.ResultChan() {
		if e.Type == watch.Error {
			return
		}
		if pod, ok := e.Object.(*corev1.Pod); ok {
			h.wake(small(pod), e.Type == watch.Deleted)
		}
	}
}

// wake delivers the state of a pod. gone means that the pod was deleted.
func (h *hints) wake(pod *corev1.Pod, gone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	waiting := h.waiting[manifest.HomeOf(pod)]
	if gone {
		pod = nil
	}
	for w := range waiting {
		w.tell(pod)
	}
}

func (h *hints) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, all := range h.waiting {
		for w := range all {
			w.tell(nil)
		}
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
