package kubernetes

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// handover passes the last seen pod from Start to Wait, and from a Wait that has timed
// out to the next one. The changes of the pod are received all the time, so the next one
// need not read it. Others may ask for the last seen state.
type handover struct {
	mu     sync.Mutex
	left   map[string]*left // by id
	closed bool
}

// left is a lookout that somebody has left.
type left struct {
	*lookout
	seen  *corev1.Pod // when it was left
	taken bool        // the next one looks now, and ends it
	timer *time.Timer
}

// leftFor is the longest time until the next one must come. A daemon's comes at once.
const leftFor = time.Minute

// keep leaves a lookout for the next one, for at most patience.
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

// take returns what was left for the next one, or nil if there is nothing.
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

// latest returns the present pod from the last seen state and the changes since then, or
// nil if it is unknown.
func (h *handover) latest(id string) *corev1.Pod {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := h.left[id]; one != nil {
		return one.told.since(one.seen)
	}
	return nil
}

// drop forgets the pod: it is stopped or has ended, and the next one has to read it.
func (h *handover) drop(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropped(id)
}

// expire drops a lookout that nobody has taken in time.
func (h *handover) expire(id string, one *left) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left[id] == one {
		h.dropped(id)
	}
}

// dropped is drop of a caller who holds h.mu.
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

// end drops all, and all that is left from now on.
func (h *handover) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for id := range h.left {
		h.dropped(id)
	}
}
