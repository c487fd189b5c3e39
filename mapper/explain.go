package mapper

import (
	"carma/mapper/explain"
	"carma/mapper/model"
)

// Check returns an *[model.ImpossibleError] with the nearest possible value if a request cannot
// be met even on an empty machine.
func (s *State) Check(r model.Request, e model.Estimate) error {
	if no := s.explainer.Impossible(r, e); no != nil {
		return no
	}
	return nil
}

// MostGPUs returns the largest number of known GPUs that one task can have: all whole
// cards, or one MIG instance.
func (s *State) MostGPUs() int { return s.explainer.MostGPUs() }

// Why explains the state of an unfinished task; ok is false for any other.
func (s *State) Why(id model.TaskID) (explain.Why, bool) {
	now := explain.Launching{NotBefore: s.attempts.NotBefore(), Again: s.scheduler.again}
	if s.paused != nil {
		now.Paused = pauseReason(s.paused, s.Now())
	}
	if s.attempts.LimitReached() {
		now.InFlight = s.attempts.InFlight()
	}
	return s.explainer.Why(id, now)
}
