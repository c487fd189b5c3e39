package console

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"carma/runner/api"
)

// viewer is a viewer who is attached to a console.
type viewer struct {
	output chan []byte
	gone   chan struct{} // closed when the viewer has left, or is cut off
	leave  func()
	cut    bool // disconnected because it read nothing; written before gone is closed
}

// Write shows output to the viewers. A viewer that reads nothing for a while is
// disconnected. Without a terminal the output is only in the log.
func (c *Console) Write(p []byte) (int, error) {
	if !c.tty {
		return len(p), nil
	}
	piece := bytes.Clone(p)
	c.mu.Lock()
	c.recent = append(c.recent, piece...)
	if n := len(c.recent); n > 2*recentBytes {
		c.recent = bytes.Clone(c.recent[n-recentBytes:])
	}
	viewers := make([]*viewer, 0, len(c.viewers))
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
func (c *Console) view() (v *viewer, seen bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil, false
	}
	v = &viewer{output: make(chan []byte, unseen), gone: make(chan struct{})}
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

// Serve serves somebody who is attached to a task's terminal or input, until
// they leave or the attempt ends. stopping reports whether the daemon ends: then the input
// is not closed.
func (c *Console) Serve(ctx context.Context, t *api.Terminal, stopping func() bool) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	v, seen := c.view()
	if v == nil {
		_ = t.Write(api.FrameExit, nil)
		return
	}
	defer v.leave()
	c.Touch()
	go func() {
		defer v.leave()
		ended := c.take(ctx, t, !seen)
		if !c.tty && !ended && !stopping() {
			c.endInput(context.WithoutCancel(ctx)) // as with docker, because nobody else will send further input
		}
	}()
	for {
		select {
		case piece, ok := <-v.output:
			if !ok {
				_ = t.Write(api.FrameExit, nil)
				return
			}
			if t.Write(api.FrameStdout, piece) != nil {
				return
			}
		case <-v.gone:
			if v.cut {
				_ = t.Write(api.FrameNote, []byte("this terminal took no output for a while and was cut off"))
			}
			return
		}
	}
}

// take reads a viewer's frames until the viewer leaves. redraw changes the terminal's size
// for a moment, which makes programs redraw. ended is true if the input has ended.
func (c *Console) take(ctx context.Context, t *api.Terminal, redraw bool) (ended bool) {
	for {
		f, err := t.Read()
		if err != nil {
			return ended
		}
		switch f.Kind {
		case api.FrameInput:
			if c.input(ctx, f.Data) != nil {
				return ended
			}
		case api.FrameEnd:
			ended = true
			c.endInput(ctx)
		case api.FrameSize:
			var to api.TerminalSize
			if json.Unmarshal(f.Data, &to) != nil {
				continue
			}
			if redraw && to.Cols > 1 {
				c.resize(ctx, api.TerminalSize{Rows: to.Rows, Cols: to.Cols - 1})
				redraw = false
			}
			c.resize(ctx, to)
		}
	}
}
