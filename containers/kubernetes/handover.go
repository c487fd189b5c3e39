package kubernetes

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// handover passes the last observed state of a pod from Start to Wait, and from a Wait that has
// timed out to the next Wait. Its lookouts keep receiving changes, so the next Wait need not
// read the pod. [handover.latest] reads the state for other callers.
type handover struct {
	mu     sync.Mutex
	left   map[string]*left // by container id
	closed bool
}

// left is a lookout that its user has left for the next one.
type left struct {
	*lookout
	seen  *corev1.Pod // state of the pod when the lookout was left
	taken bool        // the next user has the lookout, and ends it
	timer *time.Timer
}

// leftFor is the longest time for which a lookout is kept for the next user. A daemon takes it
// at once.
const leftFor = time.Minute

// keep keeps a lookout for the next user, for at most patience.
func (h *handover) keep(id string, l *lookout, patience time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropped(id)
	if h.closed {
		l.end()
		return
	}
	if h.left == nil {
		h.left = map[string]*left{}
	}
	l.told.leftHere()
	one := &left{lookout: l, seen: l.pod}
	one.timer = time.AfterFunc(patience, func() { h.expire(id, one) })
	h.left[id] = one
}

// take returns the lookout that was kept, or nil if there is none.
func (h *handover) take(id string) *lookout {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.left[id]
	if one == nil || one.taken {
		return nil
	}
	one.taken = true
	return one.lookout
}

// latest returns the present pod, computed from the state when the lookout was left and the
// changes since then, or nil if it is unknown.
func (h *handover) latest(id string) *corev1.Pod {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := h.left[id]; one != nil {
		return one.told.since(one.seen)
	}
	return nil
}

// drop removes the lookout of a pod that is stopped or has ended, so that the next user reads
// the pod.
func (h *handover) drop(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropped(id)
}

// expire removes a lookout that nobody has taken in time.
func (h *handover) expire(id string, one *left) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left[id] == one {
		h.dropped(id)
	}
}

// dropped is [handover.drop] with h.mu held.
func (h *handover) dropped(id string) {
	one := h.left[id]
	if one == nil {
		return
	}
	one.timer.Stop()
	if !one.taken {
		one.end()
	}
	delete(h.left, id)
}

// end removes all lookouts, and refuses further ones.
func (h *handover) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for id := range h.left {
		h.dropped(id)
	}
}
