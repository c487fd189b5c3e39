package throughput

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/predict"
	"carma/runner/gpu"
	"carma/runner/progress"
)

const (
	// paceEvery is the time between two reports, in the daemon's time.
	paceEvery = 30 * time.Second
	// paceLeast is the shortest wall-clock time between two reports, whatever the speed
	// of the daemon's time.
	paceLeast = 100 * time.Millisecond
	// rateErrorMost is the relative error above which a rate is not reported.
	rateErrorMost = 0.15
	// A task's throughput is reported again, at the earliest after paceAgain, if its rate has
	// changed by rateStep and by more than its uncertainty, or its completed share by shareStep.
	paceAgain = time.Minute
	rateStep  = 0.05
	shareStep = 0.05
	// Digits is the number of digits of a reported rate.
	Digits = 5
)

// reportedThroughput is the last throughput of an attempt that the mapper was given.
type reportedThroughput struct {
	at       units.Instant // 0 before the first report
	since    units.Instant // mapper.Speed.Since at that report
	unit     string
	rate, sd float64
	share    float64
}

// Loop is the loop that owns the mapper's state.
type Loop interface {
	// Look calls a func that may read the state, or returns an error.
	Look(context.Context, func(*mapper.State)) error
	// Offer hands over an event, and returns false if the loop has no time for it.
	Offer(model.Event) bool
}

// Report reports the speeds of the attempts until ctx ends: all of them in one event, at
// most every paceEvery of the daemon's time, so that the journal gets at most 120 such
// events an hour.
func (fs *Followers) Report(ctx context.Context, loop Loop) {
	for {
		timer := time.NewTimer(max(fs.clock.Wall(paceEvery), paceLeast))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-fs.nudge: // the speed of time has changed
			timer.Stop()
		case <-timer.C:
		}
		fs.send(ctx, loop)
	}
}

// send reports the tasks that have a new throughput.
func (fs *Followers) send(ctx context.Context, loop Loop) {
	fs.mu.Lock()
	all := maps.Clone(fs.of)
	fs.mu.Unlock()
	if len(all) == 0 {
		return
	}
	running := make(map[gpu.AttemptKey]predict.SpeedView, len(all))
	var now units.Instant
	err := loop.Look(ctx, func(s *mapper.State) {
		now = fs.clock.Now()
		for key := range all {
			if g, ok := s.Speed(key.Task); ok && g.Running && g.Attempt == key.Attempt {
				running[key] = g
			}
		}
	})
	if err != nil {
		return
	}
	ev := model.ThroughputReported{At: now}
	var then []func() // called if the loop accepts the event
	for key, g := range running {
		if p, told, ok := all[key].pace(now, g); ok {
			p.Task, p.Attempt = key.Task, key.Attempt
			ev.Tasks = append(ev.Tasks, p)
			then = append(then, func() { all[key].tell(told) })
		}
	}
	slices.SortFunc(ev.Tasks, func(a, b model.Throughput) int { return cmp.Compare(a.Task, b.Task) })
	if len(ev.Tasks) > 0 && loop.Offer(ev) {
		for _, note := range then {
			note()
		}
	}
}

// pace returns the throughput to report for an attempt, or false if there is none. Each
// report covers an interval of its own, after the previous report's interval.
func (f *Follower) pace(now units.Instant, g predict.SpeedView) (model.Throughput, reportedThroughput, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	since := g.Since
	f.alone.follow(now, g)
	f.standing(now)
	p, ok := f.reader.Progress(f.lived(now))
	if !ok {
		return model.Throughput{}, reportedThroughput{}, false
	}
	from, before := since, f.told
	unit := unitOf(p)
	again := before.at != 0 && before.since == since && before.unit == unit
	if again {
		from = max(from, before.at)
	}
	speed, ok := f.reader.Since(f.lived(from))
	if !ok || !(speed.Error <= rateErrorMost) {
		return model.Throughput{}, reportedThroughput{}, false
	}
	told := reportedThroughput{at: now, since: since, unit: unit, rate: speed.Rate, sd: speed.Error, share: p.Share}
	if again && !told.differs(before) {
		return model.Throughput{}, reportedThroughput{}, false
	}
	out := model.Throughput{
		Rate: Round(speed.Rate, Digits), Error: Round(speed.Error, 2), Since: from, Unit: unit,
		Steps: p.Unit == progress.Steps, Share: Round(told.share, Digits),
	}
	if len(g.Beside) > 0 && g.Measured == 0 {
		out.Alone, out.AloneError = f.aloneSpeed()
	}
	return out, told, true
}

// follow records the neighbours of an attempt.
func (a *exclusiveTime) follow(now units.Instant, g predict.SpeedView) {
	switch {
	case len(g.Beside) == 0:
		*a = exclusiveTime{from: g.Changed, settled: g.Since, until: now}
	case a.until > 0 && !a.over: // a neighbour started since the last call
		a.over = true
		if len(g.Beside) == 1 {
			a.until = max(a.until, min(g.Changed, now))
		}
	}
}

// aloneSpeed returns the rate in the time alone and the error of the rate, or 0 if
// unknown. It includes the beginning of that time if the rest is too short.
func (f *Follower) aloneSpeed() (rate, err float64) {
	a := &f.alone
	if a.until == 0 {
		return 0, 0
	}
	for _, from := range []units.Instant{a.settled, a.from} {
		if s, ok := f.reader.Speed(f.lived(from), f.lived(a.until)); ok && s.Error <= rateErrorMost {
			return Round(s.Rate, Digits), Round(s.Error, 2)
		}
	}
	return 0, 0
}

// differs reports whether there is something new to report.
func (t reportedThroughput) differs(before reportedThroughput) bool {
	change := math.Abs(math.Log(t.rate / before.rate))
	return t.at >= before.at.Add(paceAgain) &&
		(change > max(rateStep, 2*math.Hypot(t.sd, before.sd)) || t.share >= before.share+shareStep || t.share < before.share)
}

func (f *Follower) tell(told reportedThroughput) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = told
}

// unitOf names the unit of a rate. Each restart of the count gives another unit.
func unitOf(p progress.Progress) string {
	if p.Restarts > 1 {
		return fmt.Sprintf("%s %d", p.Unit, p.Restarts)
	}
	return p.Unit
}

// Round rounds a number to a number of significant digits.
func Round(v float64, digits int) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	scale := math.Pow(10, float64(digits-1)-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}
