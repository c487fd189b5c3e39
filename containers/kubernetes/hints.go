package kubernetes

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// hints tells those who wait for a pod that it may have changed. They then read
// the pod itself, so a hint that is lost or comes twice does no harm. One stream
// of events serves all pods of a namespace, or of all namespaces.
type hints struct {
	d *Driver

	mu      sync.Mutex
	waiting map[types.NamespacedName]map[chan struct{}]bool // by pod
	running map[string]bool                                 // streams, by namespace of the driver's scope
}

// again is how soon the stream of events is opened again after it broke. maxQuiet
// is how long somebody waits at most before looking without a hint.
const (
	again    = 500 * time.Millisecond
	maxQuiet = 20 * time.Second
)

// subscribe returns a channel that gets a token when the pod may have changed.
// Subscribe first, then read the pod, then wait.
func (h *hints) subscribe(pod types.NamespacedName) (changed <-chan struct{}, leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := make(chan struct{}, 1)
	if h.waiting == nil {
		h.waiting = map[types.NamespacedName]map[chan struct{}]bool{}
	}
	if h.waiting[pod] == nil {
		h.waiting[pod] = map[chan struct{}]bool{}
	}
	h.waiting[pod][c] = true
	for _, namespace := range h.d.scope {
		if h.running[namespace] || h.d.ctx.Err() != nil {
			continue
		}
		if h.running == nil {
			h.running = map[string]bool{}
		}
		h.running[namespace] = true
		h.d.tasks.Go(func() { h.run(namespace) })
	}
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waiting[pod], c)
		if len(h.waiting[pod]) == 0 {
			delete(h.waiting, pod)
		}
	}
}

// run reads a namespace's events until the driver is closed or nobody waits.
func (h *hints) run(namespace string) {
	for {
		h.watch(h.d.ctx, namespace)
		h.wakeAll()
		select {
		case <-h.d.ctx.Done():
			return
		case <-time.After(again):
		}
		if h.idle(namespace) {
			return
		}
	}
}

// idle ends a stream of events if nobody waits.
func (h *hints) idle(namespace string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running[namespace] = len(h.waiting) > 0
	return !h.running[namespace]
}

// watch reads one stream to its end. The apiserver ends it after some minutes.
func (h *hints) watch(ctx context.Context, namespace string) {
	events, err := h.d.pods(h.d.core.Get(), types.NamespacedName{Namespace: namespace}).VersionedParams(&metav1.ListOptions{
		Watch: true, LabelSelector: managedBy + "=" + ours,
	}, parameters).Watch(ctx)
	if err != nil {
		return
	}
	defer events.Stop()
	// What happened before the stream began is not in it.
	h.wakeAll()
	for e := range events.ResultChan() {
		if e.Type == watch.Error {
			return
		}
		if pod, ok := e.Object.(*corev1.Pod); ok {
			h.wake(homeOf(pod))
		}
	}
}

func (h *hints) wake(pod types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.waiting[pod] {
		poke(c)
	}
}

func (h *hints) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, all := range h.waiting {
		for c := range all {
			poke(c)
		}
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// follow reads a pod now and at each change, until look says that it is done or
// fails.
func (d *Driver) follow(ctx context.Context, what, id string, look func(*corev1.Pod) (done bool, err error)) error {
	return d.followEach(ctx, what, id, maxQuiet, look)
}

// followEach is follow with a longest time between two looks.
func (d *Driver) followEach(ctx context.Context, what, id string, every time.Duration, look func(*corev1.Pod) (done bool, err error)) error {
	_, at := d.split(id)
	changed, leave := d.hints.subscribe(at)
	defer leave()
	for {
		pod, err := d.pod(ctx, what, id)
		if err != nil {
			return err
		}
		if done, err := look(pod); done || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-time.After(every):
		case <-ctx.Done():
			return fail(ctx, what, ctx.Err())
		}
	}
}
