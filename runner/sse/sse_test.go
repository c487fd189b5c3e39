package sse

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/humatest"
)

// TestStream: each value is one event with its name, also if several goroutines send.
func TestStream(t *testing.T) {
	answer := Stream(func(_ context.Context, s *Sender) error {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := s.Send("task", map[string]string{"name": "a\nb"}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		return s.Send("wrong", func() {}) // cannot be JSON
	})
	w := httptest.NewRecorder()
	answer.Body(humatest.NewContext(&huma.Operation{}, httptest.NewRequest("GET", "/", nil), w))
	const event = "event: task\ndata: {\"name\":\"a\\nb\"}\n\n"
	if got := w.Body.String(); got != strings.Repeat(event, 8) {
		t.Errorf("%q", got)
	}
	if got := w.Header().Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("the type is %s", got)
	}
	if !w.Flushed {
		t.Error("the events were not flushed")
	}
}
