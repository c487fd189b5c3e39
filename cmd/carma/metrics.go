package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// record is what metrics are computed from: one task's life.
type record struct {
	Submitted time.Time
	Attempts  []attemptRecord
	// Ended is when the task reached its final state; it counts where no
	// attempt ended later.
	Ended     time.Time
	Succeeded bool
}

// attemptRecord is one attempt. Started is zero when it never ran.
type attemptRecord struct {
	Launched, Started, Ended time.Time
	OK, OOM                  bool
}

// lifetimes splits a task's time. JCT = Waiting + Execution + Lost.
type lifetimes struct {
	// JCT is from submission to the last end.
	JCT time.Duration
	// Execution is running in the attempt that finished, Lost in failed ones.
	Execution, Lost time.Duration
	// Waiting is the rest: queued, between attempts, and starting.
	Waiting time.Duration
}

func (r record) end() time.Time {
	end := r.Ended
	for _, a := range r.Attempts {
		if a.Ended.After(end) {
			end = a.Ended
		}
	}
	return end
}

func (r record) lifetimes() lifetimes {
	var l lifetimes
	end := r.end()
	if end.IsZero() {
		return l
	}
	l.JCT = end.Sub(r.Submitted)
	for _, a := range r.Attempts {
		if a.Started.IsZero() || a.Ended.IsZero() {
			continue
		}
		if ran := a.Ended.Sub(a.Started); a.OK {
			l.Execution += ran
		} else {
			l.Lost += ran
		}
	}
	l.Waiting = l.JCT - l.Execution - l.Lost
	return l
}

// summary are the measures of a run over all its tasks.
type summary struct {
	Tasks, Succeeded, Failed int
	// OOMs counts attempts that ran out of GPU memory, Relaunches all
	// attempts after a task's first.
	OOMs, Relaunches int
	// Makespan is from the first submission to the last end.
	Makespan                             time.Duration
	MeanJCT, MedianJCT, P95JCT, WorstJCT time.Duration
	MeanWaiting, MeanExecution, MeanLost time.Duration
	TotalLost                            time.Duration

	first, last time.Time
	jcts        []time.Duration
	sums        lifetimes
}

// summarize computes the measures; the order of the records does not matter.
func summarize(records []record) summary {
	var s summary
	for _, r := range records {
		s.add(r)
	}
	if s.Tasks == 0 {
		return s
	}
	n := time.Duration(s.Tasks)
	slices.SortFunc(s.jcts, cmp.Compare[time.Duration])
	s.Makespan = max(0, s.last.Sub(s.first))
	s.MeanJCT, s.MeanWaiting, s.MeanExecution, s.MeanLost = s.sums.JCT/n, s.sums.Waiting/n, s.sums.Execution/n, s.sums.Lost/n
	s.TotalLost = s.sums.Lost
	s.MedianJCT, s.P95JCT, s.WorstJCT = quantile(s.jcts, 0.5), quantile(s.jcts, 0.95), quantile(s.jcts, 1)
	return s
}

func (s *summary) add(r record) {
	s.Tasks++
	if r.Succeeded {
		s.Succeeded++
	} else {
		s.Failed++
	}
	s.Relaunches += max(0, len(r.Attempts)-1)
	for _, a := range r.Attempts {
		if a.OOM {
			s.OOMs++
		}
	}
	if s.first.IsZero() || r.Submitted.Before(s.first) {
		s.first = r.Submitted
	}
	if end := r.end(); end.After(s.last) {
		s.last = end
	}
	l := r.lifetimes()
	s.jcts = append(s.jcts, l.JCT)
	s.sums.JCT += l.JCT
	s.sums.Waiting += l.Waiting
	s.sums.Execution += l.Execution
	s.sums.Lost += l.Lost
}

// quantile of sorted values by nearest rank: the smallest value that a share
// q of all values does not exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(0, min(rank, len(sorted))-1)]
}
