package mapper

import (
	"carma/mapper/breaker"
	"carma/mapper/model"
)

// launchesPaused reports whether nothing at all is launched now.
func (sc *scheduler) launchesPaused() bool {
	return sc.Now() < sc.attempts.NotBefore() || sc.breakers.IsEngineOpen() || sc.attempts.LimitReached()
}

// launchProbe launches one probe task on a paused engine. It prefers a task of a user
// without any failed start, then a task without a failed start, then the next of the
// failed ones.
func (sc *scheduler) launchProbe() (p *cycle) {
	before := sc.reserve.Head()
	for trial := range breaker.AllTasks {
		sc.breakers.SelectProbes(trial)
		if p = sc.cycleUntilStable(before); sc.launchesPaused() {
			break
		}
	}
	sc.breakers.SelectProbes(breaker.AllTasks)
	return p
}

// bounded reports whether a task waits because of a quota, or because its namespace is
// full.
func (sc *scheduler) bounded(t *model.Task) bool {
	return sc.users.OverQuota(t).Code != "" || sc.breakers.IsNamespaceFull(t)
}
