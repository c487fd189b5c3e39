package health

import (
	"slices"
	"strings"
	"testing"
	"time"

	"carma/runner/api"
	"carma/runner/loop/looptest"
	"carma/runner/monitor"
	"carma/runner/problems"

	"github.com/rs/zerolog"
)

// TestAnswer: a problem is a line of the answer, with status 503.
func TestAnswer(t *testing.T) {
	if a := answerOf([]string{"a", "b"}); a.Status != 503 || string(a.Body) != "a\nb\n" {
		t.Errorf("%d %q", a.Status, a.Body)
	}
}

// TestChecks: a daemon whose loop runs is ready until the engine has a problem. A loop that ends
// keeps tasks from being stored, but a restart would not help.
func TestChecks(t *testing.T) {
	l := looptest.New(t)
	trouble := problems.New(zerolog.Nop())
	gpus, err := monitor.New(nil, l.Clock, time.Second, "", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	c := New(l.Loop, trouble, gpus)
	if bad := c.Unready(); len(bad) > 0 {
		t.Errorf("%q", bad)
	}
	trouble.Set([]api.Trouble{{Scope: "server", Code: "engine", Text: "the engine does not answer"}})
	if bad := c.Unready(); len(bad) != 1 || !strings.Contains(bad[0], "the engine does not answer") {
		t.Errorf("%q", bad)
	}
	l.BeginStop()
	if bad := c.Unready(); len(bad) != 2 || bad[0] != "the daemon is stopping" || len(c.Unhealthy()) > 0 {
		t.Errorf("%q, %q", bad, c.Unhealthy())
	}
}

// broken is a loop that has been at one round for long, and whose disk is full.
type broken struct{}

func (broken) Stuck() string  { return "it is stuck" }
func (broken) Full() string   { return "its disk is full" }
func (broken) Stopping() bool { return false }

// TestBrokenLoop: a restart helps a loop that is stuck, but not a full disk. Both keep tasks from
// being started.
func TestBrokenLoop(t *testing.T) {
	gpus, err := monitor.New(nil, looptest.New(t).Clock, time.Second, "", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	c := New(broken{}, problems.New(zerolog.Nop()), gpus)
	if bad := c.Unhealthy(); !slices.Equal(bad, []string{"it is stuck"}) {
		t.Errorf("unhealthy: %q", bad)
	}
	if bad := c.Unready(); !slices.Equal(bad, []string{"it is stuck", "its disk is full"}) {
		t.Errorf("not ready: %q", bad)
	}
}
