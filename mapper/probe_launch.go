package mapper

import (
	"carma/mapper/breaker"
	"carma/mapper/model"
)

// launchesPaused reports whether nothing at all is launched now.
func (s *State) launchesPaused() bool {
	return s.Now() < s.attempts.NotBefore() || s.breakers.IsEngineOpen() || s.attempts.LimitReached()
}

// launchProbe launches one probe task on a paused engine. It prefers a task of a user
// without any failed start, then a task without a failed start, then the next of the
// failed ones.
func (s *State) launchProbe() (p *cycle) {
	before := s.reserve.Head()
	for trial := range breaker.AllTasks {
		s.breakers.SelectProbes(trial)
		if p = s.cycleUntilStable(before); s.launchesPaused() {
			break
		}
	}
	s.breakers.SelectProbes(breaker.AllTasks)
	return p
}

// bounded reports whether a task waits because of a quota, or because its namespace is
// full.
func (s *State) bounded(t *model.Task) bool {
	return s.users.OverQuota(t).Code != "" || s.breakers.IsNamespaceFull(t)
}
