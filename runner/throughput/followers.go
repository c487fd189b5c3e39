package throughput

import (
	"sync"

	"carma/mapper/model"
	"carma/runner/clock"
	"carma/runner/gpu"
	"carma/runner/progress"
)

// Followers holds the followers of the attempts whose output is read. Safe for concurrent
// use.
type Followers struct {
	clock *clock.Clock
	nudge chan struct{} // wakes Report

	mu sync.Mutex
	of map[gpu.AttemptKey]*Follower
}

// NewFollowers returns followers that use a clock.
func NewFollowers(clock *clock.Clock) *Followers {
	return &Followers{clock: clock, nudge: make(chan struct{}, 1), of: map[gpu.AttemptKey]*Follower{}}
}

// Wake makes [Followers.Report] check the rates now.
func (fs *Followers) Wake() {
	select {
	case fs.nudge <- struct{}{}:
	default:
	}
}

// Add makes the follower of an attempt. done removes the follower.
func (fs *Followers) Add(key gpu.AttemptKey) (f *Follower, done func()) {
	f = newFollower(fs.clock)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.of[key] = f
	return f, func() {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		delete(fs.of, key)
	}
}

// Get returns the follower of an attempt, or nil if its output is not read.
func (fs *Followers) Get(key gpu.AttemptKey) *Follower {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.of[key]
}

// Progress returns the progress of a placed or suspended task according to its output.
func (fs *Followers) Progress(t *model.Task) (progress.Progress, progress.Parameters, bool) {
	if a := t.Alive(); a != nil {
		if f := fs.Get(gpu.AttemptKey{Task: t.ID, Attempt: a.N}); f != nil {
			return f.Progress(fs.clock.Now())
		}
	}
	return progress.Progress{}, progress.Parameters{}, false
}
