package notify

import (
	"net/http"
	"strings"
	"testing"
)

// TestUndelivered: a message that a receiver refuses for good is remembered with its task,
// up to a number of messages.
func TestUndelivered(t *testing.T) {
	r := receive(t, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusNotFound) })
	o := newOffice(t).open()
	o.user(1000, hookTo("mine", r))
	o.put(1, failed(7, 1000))
	until(t, "the message to be given up", func() bool { return len(o.Undelivered(1000, 7)) == 1 })
	line := o.Undelivered(1000, 7)[0]
	if !strings.HasPrefix(line, `mine: its message "failed" was given up at `) || !strings.Contains(line, "404") || strings.Contains(line, "secret") {
		t.Errorf("%q", line)
	}
	if other := append(o.Undelivered(1001, 7), o.Undelivered(1000, 8)...); len(other) > 0 {
		t.Errorf("of another: %q", other)
	}
	for i := range lostKept {
		o.put(int64(2+i), failed(int64(100+i), 1000))
	}
	until(t, "the last", func() bool {
		return strings.Contains(strings.Join(o.Undelivered(1000, 100+lostKept-1), ""), "given up")
	}) // until then it waits
	o.Post.mu.Lock()
	n := len(o.queues[key{1000, "mine"}].lost)
	o.Post.mu.Unlock()
	if n != lostKept || len(o.Undelivered(1000, 7)) > 0 {
		t.Errorf("%d are remembered, and the first of %d too", n, lostKept+1)
	}
}
