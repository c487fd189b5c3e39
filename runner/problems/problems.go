// Package problems holds the present reasons why no tasks start: the engine does not start
// containers, or the circuit breaker of the engine or of a GPU is open. It logs each problem
// when it begins and when it ends.
package problems

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"carma/mapper/breaker"
	"carma/runner/api"
	"carma/runner/engine"

	"github.com/rs/zerolog"
)

// Scopes of [api.Trouble].
const (
	ScopeDaemon = "daemon"
	ScopeEngine = "engine"
	ScopeGPU    = "gpu"
)

// Current holds the present problems. The loop writes them, and any goroutine reads them.
type Current struct {
	log zerolog.Logger

	mu      sync.Mutex
	all     []api.Trouble
	changed chan struct{} // closed at the next change
}

// New returns a list without problems.
func New(log zerolog.Logger) *Current {
	return &Current{log: log, changed: make(chan struct{})}
}

// Now returns the present problems, and a channel that is closed at the next change.
func (t *Current) Now() ([]api.Trouble, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all, t.changed
}

// set replaces the problems and returns the new ones and the ended ones. A problem that
// differs from an earlier one only in counts or times is not new.
func (t *Current) set(all []api.Trouble) (began, ended []api.Trouble) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range all {
		if !slices.ContainsFunc(t.all, func(o api.Trouble) bool { return same(x, o) }) {
			began = append(began, x)
		}
	}
	for _, x := range t.all {
		if !slices.ContainsFunc(all, func(o api.Trouble) bool { return same(x, o) }) {
			ended = append(ended, x)
		}
	}
	t.all = all
	if len(began)+len(ended) > 0 {
		close(t.changed)
		t.changed = make(chan struct{})
	}
	return began, ended
}

func same(a, b api.Trouble) bool {
	if a.Scope != b.Scope || a.Code != b.Code || (a.GPU == nil) != (b.GPU == nil) {
		return false
	}
	return a.GPU == nil || *a.GPU == *b.GPU
}

// Set replaces the problems, and logs each that begins or ends.
func (t *Current) Set(all []api.Trouble) {
	began, ended := t.set(all)
	for _, x := range began {
		ev := t.log.Error()
		if x.Scope == ScopeDaemon {
			ev = t.log.Info()
		}
		if x.Remedy != "" {
			ev = ev.Str("remedy", x.Remedy)
		}
		ev.Str("reason", x.Text).Msg("tasks are not started, and wait")
	}
	for _, x := range ended {
		t.log.Info().Str("reason", x.Text).Msg("this is over: tasks are started again")
	}
}

// Engine returns the problem that the engine starts no containers, with the text of the
// reason, which may contain a remedy.
func Engine(scope, code, reason string) api.Trouble {
	x := api.Trouble{Scope: scope, Code: code, Text: reason}
	if text, remedy, ok := strings.Cut(reason, engine.ToFix); ok {
		x.Text, x.Remedy = text, remedy
	}
	x.Cause = x.Text
	return x
}

// Breaker returns the problem that a circuit breaker is open. gpu is the index of its GPU.
func Breaker(s breaker.BreakerView, gpu int) api.Trouble {
	x := api.Trouble{
		Scope: ScopeEngine, Code: s.Code, Cause: s.Cause, Remedy: s.Remedy,
		Since: s.Since.Time(), Failures: s.Failures, Text: "the container engine starts nothing: " + s.Cause,
	}
	if s.GPU != "" {
		x.Scope, x.GPU = ScopeGPU, &gpu
		x.Text = fmt.Sprintf("GPU %d starts no containers: %s", gpu, s.Cause)
	}
	if s.Paused {
		x.NextTest = s.Test.Time()
	}
	return x
}
