package cli

import (
	"fmt"
	"testing"
	"time"

	"carma/runner/api"
)

// TestPatience checks which requests are retried: a lost submission, a request during a
// restart, and a request with an error.
func TestPatience(t *testing.T) {
	var said []string
	p := &Patience{limit: 0, notice: func(f string, args ...any) { said = append(said, fmt.Sprintf(f, args...)) }}
	gone := &api.NoDaemonError{Socket: "s"}
	if err := p.Retry(t.Context(), gone); err != gone {
		t.Errorf("beyond the limit: %v", err)
	}
	p.limit, p.since = time.Hour, time.Time{}
	wrong := &api.StatusError{Status: 422}
	if err := p.Retry(t.Context(), wrong); err != wrong {
		t.Errorf("an answer: %v", err)
	}
	answers := []error{gone, &api.StatusError{Status: 503}, nil}
	err := p.Do(t.Context(), func() error {
		err := answers[0]
		answers = answers[1:]
		return err
	})
	if err != nil || len(answers) != 0 {
		t.Errorf("%v, left %v", err, answers)
	}
	want := []string{"lost the daemon; trying again for 0s", "lost the daemon; trying again for 1h0m0s", "the daemon is back"}
	if fmt.Sprint(said) != fmt.Sprint(want) {
		t.Errorf("said %q", said)
	}
}
