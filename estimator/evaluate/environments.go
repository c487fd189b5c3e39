package evaluate

import (
	"maps"
	"slices"

	"carma/estimator/methods"
)

// Scored contains the scores on the trainings of one environment.
type Scored struct {
	Environment string  `json:"environment"` // empty if the file does not state it
	Trainings   int     `json:"trainings"`
	Scores      []Score `json:"scores"`
	// Seen contains scores of estimates from runs of the same training at other batch sizes:
	// with carma's own method, and from these runs alone.
	Seen      []Score `json:"-"`
	Published []Score `json:"published,omitempty"`
}

// Environments scores every method on the cases that were not truncated, for each
// environment separately, as Run does. The outcomes cover all environments.
func Environments(cases []Case, all []methods.Method, fallback string, confidence float64) ([]Scored, []Outcome, error) {
	by := map[string][]Case{}
	for _, c := range cases {
		if !c.Truncated {
			by[c.Environment] = append(by[c.Environment], c)
		}
	}
	var out []Scored
	var outcomes []Outcome
	for _, env := range slices.Sorted(maps.Keys(by)) {
		scores, of, err := Run(by[env], all, fallback, confidence)
		if err != nil {
			return nil, nil, err
		}
		s := Scored{Environment: env, Trainings: len(by[env]), Scores: scores, Published: Published(by[env])}
		for _, m := range all {
			if m.Name() != "carma" {
				continue
			}
			seen, err := RunSeen(by[env], m, fallback, confidence)
			if err != nil {
				return nil, nil, err
			}
			s.Seen = []Score{seen, RunAlone(by[env], 2), RunAlone(by[env], 1)}
			if len(by[env]) <= historyMost {
				for _, same := range []bool{false, true} {
					score, err := RunHistory(by[env], m, fallback, confidence, same)
					if err != nil {
						return nil, nil, err
					}
					s.Seen = append(s.Seen, score)
				}
			}
			s.Seen = slices.DeleteFunc(s.Seen, func(s Score) bool { return s.Rows == 0 })
		}
		out, outcomes = append(out, s), append(outcomes, of...)
	}
	return out, outcomes, nil
}
