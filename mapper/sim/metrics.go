package sim

import (
	"cmp"
	"math"
	"slices"
	"time"

	"carma/internal/units"
)

// Record is the history of one task, from which metrics are computed. An instant is 0 if
// it has not come.
type Record struct {
	Submitted units.Instant
	Attempts  []AttemptRecord
	// Ended is the instant at which the task reached its final state. It counts if no
	// attempt ended later.
	Ended     units.Instant
	Succeeded bool
	// Solo is the task's run time alone on an A100, or 0 if unknown.
	Solo time.Duration
	// Stretches are its suspensions, in order.
	Stretches []Stretch
	// Rest is the last time for which the task was idle. To is 0 if the task was stopped
	// then.
	Rest Stretch
}

// AttemptRecord is one attempt. Started is 0 if the attempt never ran.
type AttemptRecord struct {
	Launched, Started, Ended units.Instant
	OK, OOM                  bool
	// Speed is the speed of its slowest GPU relative to an A100, or 0 if unknown.
	Speed float64
}

// Lifetimes divides a task's time. JCT = Waiting + Execution + Lost + Away.
type Lifetimes struct {
	// JCT is from submission to the last end.
	JCT time.Duration
	// Execution is the time running in the attempt that succeeded, Lost in failed ones.
	Execution, Lost time.Duration
	// Away is the time suspended, from the decision to suspend until the task ran again.
	Away time.Duration
	// Waiting is the rest: queued, between attempts, and starting.
	Waiting time.Duration
}

func (r Record) end() units.Instant {
	end := r.Ended
	for _, a := range r.Attempts {
		end = max(end, a.Ended)
	}
	return end
}

// Lifetimes returns the parts of a finished task's time.
func (r Record) Lifetimes() Lifetimes {
	var l Lifetimes
	end := r.end()
	if end == 0 {
		return l
	}
	l.JCT = end.Sub(r.Submitted)
	for i, a := range r.Attempts {
		if a.Started == 0 || a.Ended == 0 {
			continue
		}
		away := r.away(i + 1)
		l.Away += away
		if ran := a.Ended.Sub(a.Started) - away; a.OK {
			l.Execution += ran
		} else {
			l.Lost += ran
		}
	}
	l.Waiting = l.JCT - l.Execution - l.Lost - l.Away
	return l
}

// Idle returns the time for which a task was queued, starting or suspended.
func (r Record) Idle() time.Duration {
	l := r.Lifetimes()
	return l.Waiting + l.Away
}

// away returns the time for which an attempt was suspended.
func (r Record) away(attempt int) (sum time.Duration) {
	for _, s := range r.Stretches {
		if s.Attempt == attempt {
			sum += s.To.Sub(s.From)
		}
	}
	return sum
}

// Stretched returns the time from its first start to its end, relative to the same task
// alone on the same GPUs, or 0 if Slowdown is 0.
func (r Record) Stretched() float64 {
	if r.Slowdown() == 0 {
		return 0
	}
	i := slices.IndexFunc(r.Attempts, func(a AttemptRecord) bool { return a.Started > 0 })
	rest, _ := r.resting()
	return (r.end().Sub(r.Attempts[i].Started) - rest).Seconds() * r.Attempts[len(r.Attempts)-1].Speed / r.Solo.Seconds()
}

// Slowdown returns the execution time without idle time, relative to the same task alone
// on the same GPUs, or 0 if that is not known or the task has not succeeded.
func (r Record) Slowdown() float64 {
	n := len(r.Attempts)
	if !r.Succeeded || n == 0 || r.Solo <= 0 || r.Attempts[n-1].Speed <= 0 {
		return 0
	}
	rest, away := r.resting()
	return (r.Lifetimes().Execution - rest + away).Seconds() * r.Attempts[n-1].Speed / r.Solo.Seconds()
}

// Summary contains the measures of a run over all its tasks.
type Summary struct {
	Tasks, Succeeded, Failed int
	// OOMs counts attempts that ran out of GPU memory, Relaunches all
	// attempts after a task's first.
	OOMs, Relaunches int
	// Makespan is from the first submission to the last end.
	Makespan                             time.Duration
	MeanJCT, MedianJCT, P95JCT, WorstJCT time.Duration
	MeanWaiting, MeanExecution, MeanLost time.Duration
	TotalLost                            time.Duration
	// WorstSlowdown is the highest slowdown of a task, or 0 if not known. AboveCap is the
	// share of the tasks with a slowdown above [SlowdownCap].
	WorstSlowdown, AboveCap float64
	// P99Stretched is the 99th percentile of the times from first start to end, relative to
	// the tasks alone.
	P99Stretched float64
	// Suspends counts the suspensions, Copies is the time of their copies, both ways.
	// LongestAway and P95Away are over individual suspensions.
	Suspends                     int
	Copies, LongestAway, P95Away time.Duration
}

// SlowdownCap is policy carma's default, regardless of the cap of a replay.
const SlowdownCap = 1.6

// Summarize computes the measures; the order of the records does not matter.
func Summarize(records []Record) Summary {
	var s Summary
	var first, last units.Instant = math.MaxInt64, 0
	var jct, waiting, execution, lost total
	jcts := make([]time.Duration, 0, len(records))
	for _, r := range records {
		s.count(r)
		first, last = min(first, r.Submitted), max(last, r.end())
		l := r.Lifetimes()
		jcts = append(jcts, l.JCT)
		jct.add(l.JCT)
		waiting.add(l.Waiting)
		execution.add(l.Execution)
		lost.add(l.Lost)
		slowdown := r.Slowdown()
		s.WorstSlowdown = max(s.WorstSlowdown, slowdown)
		if slowdown > SlowdownCap {
			s.AboveCap++
		}
	}
	if s.Tasks == 0 {
		return s
	}
	s.AboveCap /= float64(s.Tasks)
	slices.SortFunc(jcts, cmp.Compare[time.Duration])
	s.Makespan = max(0, last.Sub(first))
	s.MeanJCT, s.MeanWaiting, s.MeanExecution, s.MeanLost = jct.mean(s.Tasks), waiting.mean(s.Tasks), execution.mean(s.Tasks), lost.mean(s.Tasks)
	s.TotalLost = lost.mean(1)
	s.away(records)
	s.MedianJCT, s.P95JCT, s.WorstJCT = Quantile(jcts, 0.5), Quantile(jcts, 0.95), Quantile(jcts, 1)
	return s
}

// away computes the measures of the suspensions.
func (s *Summary) away(records []Record) {
	var away []time.Duration
	var stretched []float64
	for _, r := range records {
		for _, one := range r.Stretches {
			away = append(away, one.To.Sub(one.From))
			s.Copies += one.Copied
		}
		if f := r.Stretched(); f > 0 {
			stretched = append(stretched, f)
		}
	}
	slices.Sort(away)
	slices.Sort(stretched)
	s.Suspends, s.LongestAway, s.P95Away, s.P99Stretched = len(away), Quantile(away, 1), Quantile(away, 0.95), Quantile(stretched, 0.99)
}

func (s *Summary) count(r Record) {
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
}

// total adds up times whose sum may exceed a Duration, such as the waiting times of
// 100,000 tasks that each wait for a week.
type total struct{ seconds, rest time.Duration }

func (t *total) add(d time.Duration) {
	t.seconds += d / time.Second
	t.rest += d % time.Second
}

func (t *total) mean(tasks int) time.Duration {
	n := time.Duration(tasks)
	return t.seconds/n*time.Second + (t.seconds%n*time.Second+t.rest)/n
}

// Quantile returns the quantile of sorted values by nearest rank: the smallest value such
// that a share q of all values does not exceed it, or 0 without values.
func Quantile[V time.Duration | float64](sorted []V, q float64) V {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(0, min(rank, len(sorted))-1)]
}
