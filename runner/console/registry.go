package console

import (
	"context"
	"sync"
	"time"

	"carma/mapper/model"
)

// Registry holds the running containers with their terminals and inputs, if any. The
// workers write it, requests read it.
type Registry struct {
	mu      sync.Mutex
	of      map[model.TaskID]*Console
	changed chan struct{} // closed and replaced at every change
}

// New returns an empty registry.
func New() *Registry {
	return &Registry{of: map[model.TaskID]*Console{}, changed: make(chan struct{})}
}

func (c *Registry) set(task model.TaskID, to *Console) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if to == nil {
		delete(c.of, task)
	} else {
		c.of[task] = to
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// Wait returns the console of an attempt. After a restart its worker may need a moment. The
// result is nil if the console does not appear in time or the attempt has ended.
func (c *Registry) Wait(ctx context.Context, task model.TaskID, attempt int, limit time.Duration) *Console {
	over := time.After(limit)
	for {
		c.mu.Lock()
		found, changed := c.of[task], c.changed
		c.mu.Unlock()
		if found != nil && found.key.Attempt == attempt {
			return found
		}
		select {
		case <-changed:
		case <-over:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// Say shows a line of carma's to everybody who is attached to a task's terminal.
func (c *Registry) Say(task model.TaskID, text string) {
	c.mu.Lock()
	found := c.of[task]
	c.mu.Unlock()
	if found != nil && found.tty {
		found.say(text)
	}
}
