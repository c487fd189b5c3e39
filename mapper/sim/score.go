package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"carma/internal/units"
)

// Score is the way in which the monitor combines its readings. A reading is the mean over
// the second before it.
type Score string

const (
	// ScoreMean is the mean of the readings of the last 30 s, including the reading of 30
	// s ago, as carma's daemon reports it. It is the default.
	ScoreMean Score = "mean"
	// ScoreRisk is the score of CARMA and AEGIS over the last 30 readings: 0.20 mean +
	// 0.30 median + 0.30 95th percentile + 0.20 exponential moving average with alpha =
	// 2/31.
	ScoreRisk Score = "risk"
)

// riskReadings is the number of readings in the risk score.
const riskReadings = 30

func (s Score) check() error {
	switch s {
	case "", ScoreMean, ScoreRisk:
		return nil
	}
	return fmt.Errorf("unknown score %q; there are %s, %s", string(s), ScoreMean, ScoreRisk)
}

// window returns the length of time that the score covers.
func (s Score) window() units.Instant {
	if s == ScoreRisk {
		return riskReadings * sampleEvery
	}
	return window
}

// readings is a number of consecutive equal readings.
type readings struct {
	activity Activity
	n        int
}

// risk returns the risk score at a tick of the monitor. Activity changes in steps, so the
// readings between two changes are equal and count as one.
func (d *device) risk(now units.Instant) Activity {
	d.readings = d.readings[:0]
	i := 0
	for t := now - riskReadings*sampleEvery; t < now; {
		for i+1 < len(d.bends) && d.bends[i+1].at <= t {
			i++
		}
		end := now
		if i+1 < len(d.bends) {
			end = d.bends[i+1].at
		}
		r := readings{d.bends[i].activity, int((end - t) / sampleEvery)}
		if r.n == 0 { // the activity changes within the second
			after := d.integral(t + sampleEvery)
			r = readings{after.Plus(d.integral(t).Times(-1)).Times(1 / seconds(sampleEvery)), 1}
		}
		d.readings = append(d.readings, r)
		t += units.Instant(r.n) * sampleEvery
	}
	return Activity{
		SMACT: d.riskOf(func(a Activity) float64 { return a.SMACT }),
		SMOCC: d.riskOf(func(a Activity) float64 { return a.SMOCC }),
		DRAMA: d.riskOf(func(a Activity) float64 { return a.DRAMA }),
	}
}

// integral returns the integral of the activity up to an instant within the monitor's
// window.
func (d *device) integral(t units.Instant) Activity {
	i := len(d.bends) - 1
	for i > 0 && d.bends[i].at > t {
		i--
	}
	b := d.bends[i]
	return b.sum.Plus(b.activity.Times(seconds(max(0, t-b.at))))
}

// riskOf computes the score of one measure from the readings.
func (d *device) riskOf(of func(Activity) float64) float64 {
	const alpha = 2.0 / (riskReadings + 1)
	mean, average := 0.0, of(d.readings[0].activity)
	d.values = d.values[:0]
	for _, r := range d.readings {
		v := of(r.activity)
		mean += v * float64(r.n) / riskReadings
		for range r.n {
			average += alpha * (v - average)
		}
		d.values = append(d.values, value{v, r.n})
	}
	slices.SortFunc(d.values, func(a, b value) int { return cmp.Compare(a.v, b.v) })
	return 0.20*mean + 0.30*percentile(d.values, 0.50) + 0.30*percentile(d.values, 0.95) + 0.20*average
}

// value represents n equal values.
type value struct {
	v float64
	n int
}

// percentile returns a percentile of the readings, interpolated between two of them.
func percentile(sorted []value, q float64) float64 {
	at := q * (riskReadings - 1)
	below := int(at)
	low, high := nth(sorted, below), nth(sorted, below+1)
	return low + (high-low)*(at-float64(below))
}

// nth returns the value at a position, from 0.
func nth(sorted []value, i int) float64 {
	for _, v := range sorted {
		if i -= v.n; i < 0 {
			return v.v
		}
	}
	return sorted[len(sorted)-1].v
}

// sampleEvery is the time between two readings.
const sampleEvery = units.Instant(time.Second)
