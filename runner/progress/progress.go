package progress

import "time"

// Progress is the progress of a training.
type Progress struct {
	// Done and Total are in the unit Unit, and count over all epochs of the run. Total is
	// 0 if no line has it. Done never falls while Restarts stays the same.
	Done, Total float64
	Unit        string // steps, images, samples, tokens, epochs or percent
	// Epoch is the current epoch, from 1. Epochs is the number of epochs. Each is 0 if
	// unknown.
	Epoch, Epochs float64
	// Rate is the recent speed while it trains, in units per second, over the last 16
	// intervals between counts, and at least a minute, or 0 if unknown. RateError is its
	// relative standard error, or 1 if the rate is only what the program printed.
	Rate, RateError float64
	// Share is Done/Total, 0 to 1, and 0 if Total is not known or may be another
	// counter's: one epoch of several, one run of several, a run that is over.
	Share float64
	// Remaining is the time to the end, with pauses as frequent as until now, or -1 if it
	// is not known, for the same reasons as Share.
	Remaining time.Duration
	// Seen is the time when Done rose last. Source is the form of the line.
	Seen   time.Time
	Source Form
	// Throughput is the number that the program printed last, in PerSecond per second, for
	// example images, or 0.
	Throughput float64
	PerSecond  string
	// Restarts rises when the count restarts: the program has started again, or another
	// counter turned out to be the training's.
	Restarts int
	// Trusted is set if Rate, and Remaining if known, are reliable. Otherwise Doubt is the
	// reason.
	Trusted bool
	Doubt   Doubt
}

// Doubt is the reason why progress is not trusted.
type Doubt string

// The doubts.
const (
	NoDoubt   Doubt = ""
	FewLines  Doubt = "few lines"
	Irregular Doubt = "irregular"
	Silent    Doubt = "silent"
	PerhapsOf Doubt = "perhaps one epoch of several"
	// SeveralRuns means that the count has restarted, or lines mention folds or trials.
	SeveralRuns Doubt = "perhaps one run of several"
	// LastEpoch means that "epoch 0/5" may be one of five epochs or of six.
	LastEpoch Doubt = "perhaps one epoch more"
	// PastEnd means that the count has reached its total, and the program still runs.
	PastEnd Doubt = "past its end"
)

// A rate covers at least the latest recent intervals and recentLeast seconds, which is
// more intervals for a bar that is printed every second. It is trusted if it covers
// enough intervals, unless its relative error is irregular.
const (
	recent      = 16
	recentLeast = 60 // seconds
	enough      = 4
	irregular   = 0.25
)

// Progress returns the progress of the training by now, or false if no line has shown any.
func (r *Reader) Progress(now time.Time) (Progress, bool) {
	if r.count.main == 0 {
		return Progress{}, false
	}
	c := r.count.position()
	p := Progress{
		Done: r.high, Total: c.total, Unit: c.unit, Epoch: c.epoch, Epochs: c.epochs, Source: c.form, Remaining: -1,
		Seen: r.zero.Add(time.Duration(r.seen * float64(time.Second))), Restarts: r.restarts,
		Throughput: r.figure.last, PerSecond: r.figure.per,
	}
	if p.Total > 0 {
		p.Total = max(p.Total, p.Done)
	}
	points := r.pace.latest(recent, recentLeast)
	s, ok := speed(points)
	switch {
	case ok:
		p.Rate, p.RateError = s.Rate, s.Error
	case r.printed > 0 && c.unit != EpochsU && c.unit != Shares:
		p.Rate, p.RateError = r.printed, 1
	}
	p.Doubt = r.doubt(s, r.seconds(now)-r.heard, c)
	if p.Total > 0 && c.doubt == NoDoubt && p.Doubt != PastEnd {
		p.Share = p.Done / p.Total
		if quiet := r.seconds(now) - r.seen; p.Rate > 0 {
			left := (p.Total-p.Done)/p.Rate*(1+r.pace.overhead()) - max(0, quiet)
			p.Remaining = time.Duration(min(max(0, left), longestLeft) * float64(time.Second))
		}
	}
	p.Trusted = p.Doubt == NoDoubt
	return p, true
}

// longestLeft bounds the time to the end, in seconds: 100 years.
const longestLeft = 100 * 365 * 86400

// afterEnd is the time in seconds that a program may run after its count has ended.
const afterEnd = 5

// doubt returns the reason not to trust a share or a rate.
func (r *Reader) doubt(s Speed, quiet float64, c position) Doubt {
	over := c.total > 0 && r.high >= c.total
	switch {
	case c.doubt != NoDoubt && c.doubt != Irregular:
		return c.doubt
	case over && (quiet > afterEnd || r.after > again):
		return PastEnd
	case s.Intervals < enough:
		return FewLines
	case c.doubt != NoDoubt, s.Error > irregular:
		return Irregular
	case quiet > max(4*r.lull, 30) && !over:
		return Silent
	}
	return NoDoubt
}
