package progress

// counter is one thing that a program counts up: a bar, the steps of a log
// line. Bars without a name are told apart by their totals.
type counter struct {
	form     Form
	name     string
	unnamed  float64 // total of a bar without a name; 0: it has one
	strength int
	aside    bool

	first, latest float64 // times
	active        float64 // seconds in which it moved
	seen          int
	from, stride  float64 // the first count, and by how much it rose last
	done, total   float64
	length        float64 // the highest count of a run that is over
	lower         int     // lines in a row that counted lower
	fresh         int     // lines that may be of the run before

	index    float64 // epoch in which done was counted
	runs     float64 // runs that are over, if no line tells epochs
	overall  bool    // it counts through the epochs
	through  int     // epochs through which it counted on
	boundary float64 // done when the latest epoch began

	outer     int     // the bar that it is nested in; -1: none
	outerDone float64 // that one's count when this began to run
	rests     bool    // it stands still while one within it moves
	unit      string
	clock     barClock
}

func (k *counter) is(m mark) bool {
	return k.form == m.form && k.name == m.name && (m.name != "" || k.unnamed == max(0, m.steps))
}

// complete reports whether a run of the counter is over, or nearly: the last
// lines of a bar may not have been looked at.
func (k *counter) complete() bool { return k.total > 0 && k.done >= 0.9*k.total }

// stale reports whether a count is of the run before: of a process that has not
// begun the next one.
func (k *counter) stale(step float64) bool {
	if k.fresh == 0 {
		return false
	}
	k.fresh--
	return step > k.done+max(few, k.length/2)
}

// advance moves to a higher count.
func (k *counter) advance(to, at float64) {
	if to > k.done {
		k.active += at - k.latest
		k.stride = to - k.done
		k.done = to
		k.latest = at
	}
	k.lower = 0
}

// barClock turns the time that a bar prints into ours. Output that waits in a
// buffer arrives in lumps, with the time only of the last line; what a bar says
// to have passed tells when each was printed.
type barClock struct {
	began  bool
	offset float64 // our time when the bar began, at most
	passed float64
	lump   float64 // time of the latest lump
	least  float64 // of its lines, the least delay
	late   int     // lumps in a row of which no line was in time
	broken bool    // the bar's clock goes at another pace than ours
}

// onTime is the delay that is none: bars print whole seconds.
const onTime = 2

// at returns when a line was printed that came at the given time.
func (c *barClock) at(m mark, at float64) float64 {
	if m.elapsed < 0 || c.broken {
		return at
	}
	if !c.began || m.elapsed < c.passed {
		*c = barClock{began: true, offset: at - m.elapsed, lump: at}
	}
	c.passed = m.elapsed
	c.offset = min(c.offset, at-m.elapsed)
	delay := at - c.offset - m.elapsed
	if at > c.lump {
		if c.least > onTime {
			c.late++
		} else {
			c.late = 0
		}
		c.broken = c.late >= again
		c.lump, c.least = at, delay
	}
	c.least = min(c.least, delay)
	if delay <= onTime {
		return at
	}
	return c.offset + m.elapsed
}

// few steps, few lines: processes that print the same begin one a little after
// the other.
const few = 16
