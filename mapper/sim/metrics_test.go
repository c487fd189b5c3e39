package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"carma/internal/units"
)

// at returns a moment of a test's run, in minutes.
func at(minutes float64) units.Instant {
	return origin.Add(time.Duration(minutes * float64(time.Minute)))
}

func ran(launched, started, ended float64, ok bool) AttemptRecord {
	return AttemptRecord{Launched: at(launched), Started: at(started), Ended: at(ended), OK: ok, OOM: !ok}
}

func TestLifetimes(t *testing.T) {
	const m = time.Minute
	tests := []struct {
		name string
		r    Record
		want Lifetimes
	}{
		{"at once", Record{Submitted: at(0), Attempts: []AttemptRecord{ran(0, 0, 5, true)}}, Lifetimes{JCT: 5 * m, Execution: 5 * m}},
		{"waited, and started slowly", Record{Submitted: at(1), Attempts: []AttemptRecord{ran(3, 4, 10, true)}}, Lifetimes{JCT: 9 * m, Execution: 6 * m, Waiting: 3 * m}},
		{
			"second attempt", Record{Submitted: at(0), Attempts: []AttemptRecord{ran(1, 2, 4, false), ran(6, 7, 17, true)}},
			Lifetimes{JCT: 17 * m, Execution: 10 * m, Lost: 2 * m, Waiting: 5 * m},
		},
		{"failed", Record{Submitted: at(0), Attempts: []AttemptRecord{ran(0, 1, 4, false)}, Ended: at(4)}, Lifetimes{JCT: 4 * m, Lost: 3 * m, Waiting: m}},
		{"cancelled in the queue", Record{Submitted: at(2), Ended: at(7)}, Lifetimes{JCT: 5 * m, Waiting: 5 * m}},
		{
			"an attempt that never started", Record{Submitted: at(0), Attempts: []AttemptRecord{{Launched: at(1), Ended: at(2)}, ran(3, 3, 5, true)}},
			Lifetimes{JCT: 5 * m, Execution: 2 * m, Waiting: 3 * m},
		},
		{"unfinished", Record{Submitted: at(0), Attempts: []AttemptRecord{{Launched: at(1), Started: at(2)}}}, Lifetimes{}},
	}
	for _, tt := range tests {
		if got := tt.r.Lifetimes(); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestSummarize(t *testing.T) {
	records := []Record{
		{Submitted: at(0), Attempts: []AttemptRecord{ran(0, 1, 11, true)}, Succeeded: true},
		{Submitted: at(5), Attempts: []AttemptRecord{ran(5, 5, 7, false), ran(10, 10, 25, true)}, Succeeded: true},
		{Submitted: at(6), Attempts: []AttemptRecord{ran(6, 6, 8, false)}},
	}
	s := Summarize(records)
	if s.Tasks != 3 || s.Succeeded != 2 || s.Failed != 1 || s.OOMs != 2 || s.Relaunches != 1 {
		t.Errorf("counts: %+v", s)
	}
	for name, d := range map[string][2]time.Duration{
		"makespan": {s.Makespan, 25 * time.Minute}, "mean JCT": {s.MeanJCT, 11 * time.Minute}, "median JCT": {s.MedianJCT, 11 * time.Minute},
		"p95 JCT": {s.P95JCT, 20 * time.Minute}, "worst JCT": {s.WorstJCT, 20 * time.Minute}, "mean waiting": {s.MeanWaiting, 80 * time.Second},
		"mean execution": {s.MeanExecution, 500 * time.Second}, "mean lost": {s.MeanLost, 80 * time.Second}, "total lost": {s.TotalLost, 4 * time.Minute},
	} {
		if d[0] != d[1] {
			t.Errorf("%s is %s, want %s", name, d[0], d[1])
		}
	}
	if s := Summarize(nil); s.Tasks != 0 || s.Makespan != 0 || s.P95JCT != 0 {
		t.Errorf("nothing: %+v", s)
	}
}

// For any tasks, parts add up, nothing is negative, the makespan is no shorter than any
// task, and the order of the records does not matter.
func TestSummaryProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var records []Record
		longest := time.Duration(0)
		for range 1 + random.IntN(20) {
			now := random.Float64() * 100
			r := Record{Submitted: at(now), Succeeded: true}
			for n := random.IntN(3); n >= 0; n-- {
				launched := now + random.Float64()*10
				started := launched + random.Float64()
				now = started + random.Float64()*50
				r.Attempts = append(r.Attempts, ran(launched, started, now, n == 0))
			}
			records = append(records, r)
			l := r.Lifetimes()
			if l.Waiting < 0 || l.Execution <= 0 || l.Lost < 0 || l.JCT != l.Waiting+l.Execution+l.Lost {
				t.Fatalf("%+v of %+v", l, r)
			}
			longest = max(longest, l.JCT)
		}
		s := Summarize(records)
		if s.Makespan < longest || s.WorstJCT != longest || s.P95JCT > s.WorstJCT || s.MedianJCT > s.P95JCT {
			t.Fatalf("%+v, longest %s", s, longest)
		}
		random.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
		if again := Summarize(records); again.Makespan != s.Makespan || again.MeanJCT != s.MeanJCT || again.P95JCT != s.P95JCT {
			t.Fatalf("%+v, shuffled %+v", s, again)
		}
	}
}

func TestQuantile(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1))
	}
	for _, tt := range []struct {
		values []time.Duration
		q      float64
		want   time.Duration
	}{
		{nil, 0.95, 0}, {hundred[:1], 0.95, 1}, {hundred, 0.95, 95}, {hundred, 0.5, 50}, {hundred, 1, 100}, {hundred, 0, 1},
		{hundred[:20], 0.95, 19}, {hundred[:21], 0.95, 20},
	} {
		if got := Quantile(tt.values, tt.q); got != tt.want {
			t.Errorf("quantile %v of %d values is %d, want %d", tt.q, len(tt.values), got, tt.want)
		}
	}
}
