package runner

import (
	"bytes"
	"sync"
	"time"
)

// consoleClient is a viewer who is attached to a console.
type consoleClient struct {
	output chan []byte
	gone   chan struct{} // closed when the viewer has left, or is cut off
	leave  func()
	cut    bool // disconnected because it read nothing; written before gone is closed
}

// Write shows output to the viewers. A viewer that reads nothing for a while is
// disconnected. Without a terminal the output is only in the log.
func (c *console) Write(p []byte) (int, error) {
	if !c.tty {
		return len(p), nil
	}
	piece := bytes.Clone(p)
	c.mu.Lock()
	c.recent = append(c.recent, piece...)
	if n := len(c.recent); n > 2*recentBytes {
		c.recent = bytes.Clone(c.recent[n-recentBytes:])
	}
	viewers := make([]*consoleClient, 0, len(c.viewers))
	for v := range c.viewers {
		viewers = append(viewers, v)
	}
	c.mu.Unlock()
	for _, v := range viewers {
		select {
		case v.output <- piece:
			continue
		case <-v.gone:
			continue
		default:
		}
		late := time.NewTimer(unseenFor)
		select {
		case v.output <- piece:
		case <-v.gone:
		case <-late.C:
			v.cut = true
			v.leave()
		}
		late.Stop()
	}
	return len(p), nil
}

// view attaches a viewer, who gets the latest output first; seen is true if there was some.
// It returns nil if the program has ended.
func (c *console) view() (v *consoleClient, seen bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil, false
	}
	v = &consoleClient{output: make(chan []byte, unseen), gone: make(chan struct{})}
	v.leave = sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.viewers, v)
		close(v.gone)
	})
	recent := c.recent
	if n := len(recent); n > recentBytes {
		recent = recent[n-recentBytes:]
		if i := bytes.IndexByte(recent, '\n'); i >= 0 {
			recent = recent[i+1:] // the output begins with a whole line
		}
	}
	if len(recent) > 0 {
		v.output <- bytes.Clone(recent)
	}
	c.viewers[v] = true
	return v, len(recent) > 0
}
