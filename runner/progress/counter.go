package progress

// counter is one count of a program, such as a bar or the steps of log lines. The totals
// distinguish bars without a name.
type counter struct {
	form     Form
	name     string
	unnamed  float64 // total of a bar without a name, or 0 if the bar has a name
	strength int
	aside    bool

	first, latest float64 // times
	active        float64 // seconds in which the counter moved
	seen          int
	from, stride  float64 // the first count, and the size of the last rise
	moves         int     // number of rises, each at a later time
	rises         int     // number of rises at any time
	moved         float64 // time of the last rise
	second        float64 // the count at the first move
	secondAt      float64
	done, total   float64
	length        float64 // the highest count of an ended run
	lower         int     // consecutive lines with a lower count
	totals        int     // lines with a total
	foreign       int     // consecutive lines whose total was far from the counter's
	offered       float64 // a total that one line named for a count without a total
	changed       int     // lines whose total changed while the count did not
	fresh         int     // lines that may belong to the previous run

	index    float64 // epoch in which done was counted
	runs     float64 // number of ended runs, if no line shows epochs
	overall  bool    // the counter does not restart at epochs
	through  int     // number of epochs at which the counter did not restart
	before   float64 // done when a line said first that an epoch has begun
	boundary float64 // done when epoch index began
	bounds   int     // number of epochs that began while it counted
	scope    scope   // the range of its total, from its form, name or settings
	resumed  bool    // it began far above zero
	passed   float64 // time passed according to its bar when first seen, or -1

	outer     int     // index of the bar that it is nested in, or -1
	outerDone float64 // count of the outer bar when this one began to run
	rests     bool    // the counter does not move while a bar within it moves
	unit      string
	clock     barClock
}

func (k *counter) is(m mark) bool {
	switch {
	case k.form != m.form || k.name != m.name:
		return false
	case m.name == "":
		return k.unnamed == max(0, m.steps)
	case m.form == Tqdm && m.epoch < 0 && max(k.strength, m.strength) < 3 && m.steps > 0 && k.total > 0:
		return m.steps <= alike*k.total && k.total <= alike*m.steps
	}
	return true
}

// alike is the largest ratio between the totals of two bars that count as the same bar.
// Bars that are named after their metrics have one name in training and in validation.
const alike = 2

// renamed reports whether a mark belongs to this bar, which got a name after it was
// printed without a count, as by tqdm's set_description. A bar within it would begin at
// 0.
func (k *counter) renamed(m mark) bool {
	return k.form == Tqdm && m.form == Tqdm && k.name == "" && m.name != "" && k.rises == 0 && k.done == 0 &&
		m.step > 0 && m.steps > 0 && m.steps == k.total
}

// of reports whether the total of a mark may be the total of its step. A number that
// changes while the step stays the same is no total: "Batch 3/1200", "Batch 3/1300".
func (k *counter) of(m mark) bool {
	switch {
	case m.form != Words || m.steps <= 0 || k.seen == 0:
		return true
	case m.steps == k.total:
		k.changed = 0
	case m.step == k.done && k.total > 0:
		k.changed++
	}
	return k.changed < 2
}

// another reports whether a mark belongs to another count with the same name, such as the
// steps of an evaluation. A mark may do so if it has no total, or if its total is far
// from the total of the lines before, until many lines have that total. The first total
// of a count without a total also counts as another count, until a second line has it.
func (k *counter) another(m mark) bool {
	if m.form != Words {
		return false
	}
	established := k.total > 0 && k.totals > again
	switch {
	case m.steps < 0:
		return established
	case established && (m.steps > alike*k.total || k.total > alike*m.steps):
		k.foreign++
		if k.foreign < few {
			return true
		}
		k.totals = 0
	case k.total == 0 && k.rises >= again && m.steps != k.offered:
		k.offered = m.steps
		return true
	}
	k.foreign = 0
	k.totals++
	return false
}

// counts reports whether the counter has moved twice, or several times at once, as
// buffered output does. One line may be a setting, and one move may lead from a setting
// to the count.
func (k *counter) counts() bool { return k.moves >= 2 || k.rises >= atOnce }

// atOnce is the number of rises that count although their lines came at one time.
const atOnce = 4

// renew makes the counter begin at a count. Earlier numbers are ignored.
func (k *counter) renew(step, at float64) {
	k.done, k.from, k.latest, k.first = step, step, at, at
	k.moves, k.rises, k.moved, k.lower, k.active, k.stride = 0, 0, at, 0, 0, 0
}

// begunBefore reports whether a bar began far above zero, as in a resumed run. Such a bar
// prints a shorter elapsed time than its steps take.
func (k *counter) begunBefore() bool {
	const share = 0.02 // of the total
	if k.passed < 0 || k.total <= 0 || k.from < max(few, share*k.total) || k.active <= 0 {
		return false
	}
	speed := (k.done - k.from) / k.active
	return speed*(k.passed+1) < k.from/4 // bars print whole seconds
}

// complete reports whether a run of the counter is over or nearly over, since the last
// lines of a bar may have been skipped.
func (k *counter) complete() bool { return k.total > 0 && k.done >= 0.9*k.total }

// stale reports whether a count belongs to the previous run, from a process that has not
// begun the next run.
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
		k.rises++
		if at > k.moved {
			k.moves++
			k.moved = at
			if k.moves == 1 {
				k.second, k.secondAt = to, at
			}
		}
		k.active += at - k.latest
		k.stride = to - k.done
		k.done = to
		k.latest = at
	}
	k.lower = 0
}

// barClock converts the time that a bar prints to the reader's time. Buffered output
// arrives in lumps, all with the time of the last line. The elapsed time in a bar shows
// when each line was printed.
type barClock struct {
	began  bool
	offset float64 // upper bound of the reader's time when the bar began
	passed float64
	lump   float64 // time of the latest lump
	least  float64 // shortest delay of a line in the lump
	late   int     // consecutive lumps without a line in time
	broken bool    // the bar's clock and the reader's run at different speeds
}

// onTime is the longest delay in seconds that counts as no delay, because bars print
// whole seconds.
const onTime = 2

// at returns the time at which a line that arrived at the given time was printed.
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

// few is a small number of steps or lines, for processes that print the same and begin
// shortly after each other.
const few = 16

// lag returns the number of steps by which a process may be behind another. It is few, or
// less for short counts.
func (k *counter) lag() float64 {
	const share = 0.03
	if k.total <= 0 {
		return few
	}
	return min(few, max(2, share*k.total))
}
