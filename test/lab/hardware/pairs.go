package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// ran is an answer of worker.py.
type ran struct {
	Stage    string  `json:"stage"`
	Steps    int     `json:"steps"`
	Seconds  float64 `json:"seconds"`
	Samples  int     `json:"samples"`
	Reserved int64   `json:"reserved"`
}

func (r ran) rate() float64 { return float64(r.Steps) / r.Seconds }

// profile is a task measured alone: a row of profiles.csv.
type profile struct {
	training
	Samples  int     // samples of an epoch
	Rate     float64 // steps per second alone: mean of the runs before and after the pairs
	Again    float64 // rate after the pairs over rate before them
	Activity activity
	worker   *peer
}

// pair is two tasks measured together: a row of pairs.csv. Rates are in steps per
// second.
type pair struct {
	A, B         int // their profiles
	RateA, RateB float64
}

// pairing is the tasks alone and in pairs, with one way of sharing the card.
type pairing struct {
	Mode     string // timeSlicing or byMPS
	Profiles []profile
	Pairs    []pair
	Unpaired []string
	Why      string // why it was not measured, or ran in another mode, or empty
	Scored   string // output of carma replay --pairs
}

// suffix ends the names of its profiles and of its file.
func (p *pairing) suffix() string {
	if p.Mode == byMPS {
		return "-mps"
	}
	return ""
}

// pairs measures the pairs by time slicing, as clients of MPS, or both.
func (s *session) pairs(ctx context.Context) error {
	if s.python == "" {
		return omitf("no Python with PyTorch on this machine")
	}
	modes := []string{s.pairMode}
	if s.pairMode == bothModes {
		modes = []string{timeSlicing, byMPS}
	}
	var errs []error
	for i, mode := range modes {
		inner, cancel := context.WithTimeout(ctx, remaining(ctx)/time.Duration(len(modes)-i))
		p := &pairing{Mode: mode}
		s.report.Paired = append(s.report.Paired, p)
		end, why := func() {}, ""
		if mode == byMPS {
			end, why = s.startMPS(inner)
		}
		if p.Why = why; why == "" {
			errs = append(errs, s.pair(inner, p))
		}
		end()
		cancel()
	}
	return errors.Join(errs...)
}

// pair loads all tasks of the plan, one process each. It trains them alone and
// two at a time. A process that does not train sleeps; it only takes memory.
func (s *session) pair(ctx context.Context, to *pairing) error {
	profiles := s.load(ctx, to)
	defer func() {
		for i := range profiles {
			profiles[i].worker.end()
		}
	}()
	if len(profiles) < 2 {
		return errors.New("fewer than two tasks could be loaded; suite.log tells why")
	}
	if to.Mode == byMPS {
		seen := clients{seen: onCard{}}
		now, err := listClients(s.card.device.UUID)
		seen.failed = err
		seen.add(now)
		to.Why = seen.verdict(len(profiles))
	}
	var first []float64
	for i := range profiles {
		if err := s.alone(ctx, &profiles[i]); err != nil {
			return err
		}
		first = append(first, profiles[i].Rate)
	}
	to.Profiles = profiles
	err := s.together(ctx, to)
	if err == nil {
		err = s.again(ctx, profiles, first)
	}
	if err = errors.Join(err, s.report.writePairs(s.out)); err != nil || s.card == nil || len(to.Pairs) == 0 {
		return err
	}
	out, err := s.carmaOutput(context.WithoutCancel(ctx), "replay", "--pairs", filepath.Join(s.out, "pairs"+to.suffix()+".csv"), "--profiles", filepath.Join(s.out, "profiles.csv"))
	to.Scored = string(out)
	return err
}

// again measures the tasks alone once more, to see whether the card has drifted.
func (s *session) again(ctx context.Context, profiles []profile, first []float64) error {
	for i := range profiles {
		p := &profiles[i]
		if remaining(ctx) < s.turn() {
			break
		}
		r, err := s.train(ctx, p)
		if err != nil {
			return err
		}
		p.Again, p.Rate = r[0].rate()/first[i], (r[0].rate()+first[i])/2
	}
	return nil
}

// turn returns the time of one measurement.
func (s *session) turn() time.Duration {
	return time.Duration((s.plan.window + 2*s.plan.warm + 0.3) * float64(time.Second))
}

// load starts all workers at once. It leaves out workers that do not start.
func (s *session) load(ctx context.Context, to *pairing) (up []profile) {
	var profiles []profile
	for _, t := range s.plan.pairs {
		w, err := s.startPeer(ctx, "worker.py", append(t.args(), "--device", s.plan.device, "--gpus", "1")...)
		if err != nil {
			s.say("pairs: %s: %v", t.id(), err)
			continue
		}
		profiles = append(profiles, profile{training: t, worker: w})
	}
	for _, p := range profiles {
		var ready ran
		if err := p.worker.answer(ctx, &ready); err != nil {
			to.Unpaired = append(to.Unpaired, fmt.Sprintf("%s: %v", p.id(), err))
			s.say("pairs: %s left out: %v", p.id(), err)
			p.worker.end()
			continue
		}
		p.Samples = ready.Samples
		up = append(up, p)
	}
	return up
}

// alone measures a task without neighbours, with the card's activity.
func (s *session) alone(ctx context.Context, p *profile) error {
	result := func() activity { return activity{} }
	if s.card != nil {
		span := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
		result = s.card.watch(ctx, span(lead+s.plan.warm), span(s.plan.window))
	}
	r, err := s.train(ctx, p)
	p.Activity = result()
	if err == nil {
		p.Rate = r[0].rate()
	}
	return err
}

// lead is the time in seconds between an order and its beginning, so that both
// tasks of a pair get it in time.
const lead = 0.05

// together measures each pair, as long as there is time. The tables are written after
// each pair, so that no results are lost.
func (s *session) together(ctx context.Context, to *pairing) error {
	profiles := to.Profiles
	spare := s.turn() * time.Duration(len(profiles)+1)
	for distance := 1; distance < len(profiles); distance++ { // in this order each task is soon in some pair
		for i := 0; i+distance < len(profiles); i++ {
			if remaining(ctx) < spare {
				return nil
			}
			a, b := &profiles[i], &profiles[i+distance]
			r, err := s.train(ctx, a, b)
			if err != nil {
				return fmt.Errorf("%s with %s: %w", a.id(), b.id(), err)
			}
			to.Pairs = append(to.Pairs, pair{i, i + distance, r[0].rate(), r[1].rate()})
			if err := s.report.writePairs(s.out); err != nil {
				return err
			}
		}
	}
	return nil
}

// train lets tasks train at the same time. Steps in the warm-up do not count,
// because one task may begin earlier.
func (s *session) train(ctx context.Context, tasks ...*profile) ([]ran, error) {
	at := float64(time.Now().UnixNano())/1e9 + lead
	for _, t := range tasks {
		if err := t.worker.send("run %.3f %g %g", at, s.plan.warm, s.plan.window); err != nil {
			return nil, err
		}
	}
	results := make([]ran, len(tasks))
	for i, t := range tasks {
		if err := t.worker.answer(ctx, &results[i]); err != nil {
			return nil, err
		}
		if results[i].Steps < 1 || results[i].Seconds <= 0 {
			return nil, fmt.Errorf("%s completed no step", t.id())
		}
	}
	return results, nil
}
