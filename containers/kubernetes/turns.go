package kubernetes

import (
	"container/list"
	"sync"
	"time"
)

// turns is a queue that gives its members turns in the order in which they came, with a minimum
// time between two turns.
type turns struct {
	every time.Duration

	mu    sync.Mutex
	queue list.List // a channel for each waiter
	busy  bool      // the minimum time after the last turn has not passed
}

// ask enters the queue. turn is closed when the caller has its turn. leave gives the turn up.
func (q *turns) ask() (turn <-chan struct{}, leave func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	mine := make(chan struct{})
	place := q.queue.PushBack(mine)
	if !q.busy {
		q.give()
	}
	return mine, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.queue.Remove(place) // no effect after its turn
	}
}

// give gives the first member its turn. The caller holds q.mu.
func (q *turns) give() {
	first := q.queue.Front()
	if q.busy = first != nil; !q.busy {
		return
	}
	close(q.queue.Remove(first).(chan struct{}))
	time.AfterFunc(q.every, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.give()
	})
}
