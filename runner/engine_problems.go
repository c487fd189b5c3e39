package runner

import (
	"carma/mapper/words"
	"carma/runner/api"
	"carma/runner/problems"
)

// findProblems returns the present reasons why no tasks start. Only the loop calls it.
func (r *Runner) findProblems() []api.Trouble {
	var all []api.Trouble
	if reason := r.loop.State().EngineDown(); reason.Code != "" {
		down := words.Reason(reason)
		scope, code := problems.ScopeEngine, "down"
		switch {
		case r.draining.Load():
			scope, code = problems.ScopeDaemon, "draining"
		case down == r.reconciler.Reason():
			code = r.reconciler.Code()
		}
		all = append(all, problems.Engine(scope, code, down))
	}
	for _, b := range r.loop.State().Breakers() {
		all = append(all, problems.Breaker(b, r.gpus.Index(b.GPU)))
	}
	return all
}
