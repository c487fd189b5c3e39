package runner

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"carma/mapper/breaker"
	"carma/mapper/words"
	"carma/runner/api"
	"carma/runner/engine"
)

// Scopes of [api.Trouble].
const (
	troubleDaemon = "daemon"
	troubleEngine = "engine"
	troubleGPU    = "gpu"
)

// problems holds the present reasons why tasks do not start. The loop writes the reasons,
// and any goroutine reads them.
type problems struct {
	mu      sync.Mutex
	all     []api.Trouble
	changed chan struct{} // closed at the next change
}

func newProblems() *problems { return &problems{changed: make(chan struct{})} }

func (t *problems) now() ([]api.Trouble, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all, t.changed
}

// set replaces the troubles and returns the new ones and the ended ones. A trouble that
// differs from an earlier one only in counts or times is not new.
func (t *problems) set(all []api.Trouble) (began, ended []api.Trouble) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range all {
		if !slices.ContainsFunc(t.all, func(o api.Trouble) bool { return sameProblem(x, o) }) {
			began = append(began, x)
		}
	}
	for _, x := range t.all {
		if !slices.ContainsFunc(all, func(o api.Trouble) bool { return sameProblem(x, o) }) {
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

func sameProblem(a, b api.Trouble) bool {
	if a.Scope != b.Scope || a.Code != b.Code || (a.GPU == nil) != (b.GPU == nil) {
		return false
	}
	return a.GPU == nil || *a.GPU == *b.GPU
}

// logProblems logs each problem when it begins and when it ends. The loop calls it after
// each round.
func (r *Runner) logProblems() {
	began, ended := r.trouble.set(r.findProblems())
	for _, x := range began {
		ev := r.Log.Error()
		if x.Scope == troubleDaemon {
			ev = r.Log.Info()
		}
		if x.Remedy != "" {
			ev = ev.Str("remedy", x.Remedy)
		}
		ev.Str("reason", x.Text).Msg("tasks are not started, and wait")
	}
	for _, x := range ended {
		r.Log.Info().Str("reason", x.Text).Msg("this is over: tasks are started again")
	}
}

func (r *Runner) findProblems() []api.Trouble {
	var all []api.Trouble
	if reason := r.loop.State().EngineDown(); reason.Code != "" {
		down := words.Reason(reason)
		x := api.Trouble{Scope: troubleEngine, Code: "down", Text: down}
		if text, remedy, ok := strings.Cut(down, engine.ToFix); ok {
			x.Text, x.Remedy = text, remedy
		}
		switch {
		case r.draining.Load():
			x.Scope, x.Code = troubleDaemon, "draining"
		case down == r.lookout.reason():
			x.Code = r.lookout.code()
		}
		x.Cause = x.Text
		all = append(all, x)
	}
	for _, sick := range r.loop.State().Breakers() {
		all = append(all, r.viewSick(sick))
	}
	return all
}

func (r *Runner) viewSick(s breaker.BreakerView) api.Trouble {
	x := api.Trouble{
		Scope: troubleEngine, Code: s.Code, Cause: s.Cause, Remedy: s.Remedy,
		Since: s.Since.Time(), Failures: s.Failures, Text: "the container engine starts nothing: " + s.Cause,
	}
	if s.GPU != "" {
		at := r.gpus.Ref(s.GPU).Index
		x.Scope, x.GPU = troubleGPU, &at
		x.Text = fmt.Sprintf("GPU %d starts no containers: %s", at, s.Cause)
	}
	if s.Paused {
		x.NextTest = s.Test.Time()
	}
	return x
}
