package runner

import (
	"context"
	"sync"
	"time"

	"carma/mapper/model"
)

// consoles holds the running containers with their terminals and inputs, if any. The
// workers write it, requests read it.
type consoles struct {
	mu      sync.Mutex
	of      map[model.TaskID]*console
	changed chan struct{} // closed and replaced at every change
}

func newConsoles() *consoles {
	return &consoles{of: map[model.TaskID]*console{}, changed: make(chan struct{})}
}

func (c *consoles) set(task model.TaskID, to *console) {
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

// wait returns the console of an attempt. After a restart its worker may need a moment. The
// result is nil if the console does not appear in time or the attempt has ended.
func (c *consoles) wait(ctx context.Context, task model.TaskID, attempt int, limit time.Duration) *console {
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

// say shows a line of carma's to everybody who is attached to a task's terminal.
func (c *consoles) say(task model.TaskID, text string) {
	c.mu.Lock()
	found := c.of[task]
	c.mu.Unlock()
	if found != nil && found.tty {
		found.say(text)
	}
}
