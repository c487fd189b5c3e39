// Package sse sends server-sent events to a caller of the API.
package sse

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"carma/runner/httplimit"

	"github.com/danielgtaylor/huma/v2"
)

// Sender writes server-sent events to one caller. It is safe for concurrent use.
type Sender struct {
	mu    sync.Mutex
	ctx   huma.Context
	flush http.Flusher
	dead  func(time.Time) error
}

// Stream returns a response that sends the events of f until f returns or the caller leaves.
func Stream(f func(context.Context, *Sender) error) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", "text/event-stream")
		hc.SetHeader("Cache-Control", "no-store")
		hc.SetStatus(http.StatusOK)
		s := &Sender{ctx: hc}
		if w, ok := hc.BodyWriter().(http.ResponseWriter); ok {
			rc := http.NewResponseController(w)
			s.dead = rc.SetWriteDeadline
			s.flush, _ = w.(http.Flusher)
			_ = rc.Flush() // the caller learns at once that it is connected
		}
		_ = f(hc.Context(), s) // an error cannot be sent any more
	}}
}

// Send sends a value as JSON.
func (s *Sender) Send(event string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	fmt.Fprintf(&buf, "event: %s\ndata: %s\n\n", event, b)
	return s.Write(buf.Bytes())
}

// Write sends a finished event.
func (s *Sender) Write(event []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead != nil {
		_ = s.dead(time.Now().Add(httplimit.StreamWrite))
	}
	if _, err := s.ctx.BodyWriter().Write(event); err != nil {
		return err
	}
	if s.flush != nil {
		s.flush.Flush()
	}
	return nil
}
