package progress

// counters contains the counters of a program, and the index of the training's counter.
type counters struct {
	list    [8]counter
	n       int
	main    int // index of the training's counter plus 1, or 0 if there is none yet
	epochs  epochs
	version int  // rises when the count restarts
	trainer bool // Hugging Face's dictionaries were seen
	told    told
	outer   outer
	several bool // a run that was over or nearly over has restarted, so there may be several runs

	left timeLeft
}

// outcome classifies the effect of a mark.
type outcome int

const (
	nothing  outcome = iota
	besides          // a counter of something else moved
	training         // the training's counter moved
)

// take applies a mark that is not aside. It returns the effect of the mark, and the time
// at which the line was printed.
func (c *counters) take(m mark, at float64) (outcome, float64) {
	before := c.main
	if m.form == Dictionary {
		c.trainer = true
	}
	moved := stays
	if m.epoch >= 0 {
		moved = c.epochs.take(m)
		c.epochs.settle(c.told.epochs.get())
		switch moved {
		case none:
			m.epoch = unset
		case earlier:
			return nothing, at
		case anew:
			c.several = true
			c.restart()
		}
	}
	if m.step < 0 && m.epoch >= 0 {
		m.countEpochs(&c.epochs)
	}
	if m.step < 0 {
		return nothing, at
	}
	i := c.find(m, at)
	k := &c.list[i]
	if !k.of(m) {
		k.total, k.length, k.totals = 0, 0, 0
		return nothing, at
	}
	if k.another(m) {
		return besides, at
	}
	at = max(k.clock.at(m, at), k.latest)
	c.step(i, m, at)
	c.choose(at)
	if c.main != before && before != 0 {
		c.version++
	}
	switch {
	case c.main == i+1, c.main > 0 && (c.list[c.main-1].outer == i || moved == moves):
		return training, at
	case c.list[i].aside:
		return besides, at
	}
	return nothing, at
}

// countEpochs makes a mark with an epoch and no step count epochs.
func (m *mark) countEpochs(e *epochs) {
	if m.form != Tqdm {
		m.form = Epochs
	}
	m.name, m.unit, m.strength = "epochs", EpochsU, 1
	m.step, m.steps, m.epoch = e.index, max(e.total, unset), unset
	if m.over && m.steps != m.step {
		m.step++
	}
}

// find returns the index of the counter that a mark belongs to. A new counter replaces
// the counter without a line for the longest time if there is no room.
func (c *counters) find(m mark, at float64) int {
	for i := range c.list[:c.n] {
		if c.list[i].is(m) {
			return i
		}
	}
	for i := range c.list[:c.n] {
		if k := &c.list[i]; k.renamed(m) {
			k.name, k.unnamed = m.name, 0
			return i
		}
	}
	i := c.n
	if c.n == len(c.list) {
		i = -1
		for j := range c.list {
			if j+1 != c.main && (c.main == 0 || c.list[c.main-1].outer != j) && (i < 0 || c.list[j].latest < c.list[i].latest) {
				i = j
			}
		}
		for j := range c.list {
			if c.list[j].outer == i {
				c.list[j].outer = -1
			}
		}
	} else {
		c.n++
	}
	c.list[i] = counter{
		form: m.form, name: m.name, first: at, latest: at, from: m.step, done: m.step, index: c.epochs.index,
		outer: -1, unit: m.unit, overall: m.form == Dictionary || m.scope == scopeRun, moved: at, passed: m.elapsed, scope: m.scope,
	}
	if m.name == "" {
		c.list[i].unnamed = max(0, m.steps)
	}
	return i
}

// step moves a counter to the count of a mark.
func (c *counters) step(i int, m mark, at float64) {
	k := &c.list[i]
	k.strength = max(k.strength, m.strength)
	if m.steps > 0 {
		k.total = m.steps
	}
	if s := c.told.scopeOf(k.total); s != scopeUnknown && k.scope == scopeUnknown && !k.weak() {
		k.scope = s
		k.overall = k.overall || s == scopeRun
	}
	k.seen++
	switch {
	case k.seen == 1:
		c.nest(i)
	case k.moves == 0 && (k.rises == 0 || k.total == 0) && m.step < k.done:
		k.renew(m.step, at)
	case (m.epoch >= 0 || k.form == Keras) && c.epochs.index > k.index:
		k.newEpoch(c.epochs.index, m.step, at)
		if k.overall && k.scope != scopeRun && !c.runsThrough(k) {
			k.overall, k.through = false, 0
		}
	case m.step >= k.done:
		if k.stale(m.step) {
			break
		}
		if c.epochs.index > k.index && m.step > k.done && m.epoch < 0 && !k.weak() {
			k.countsOn(m.step, c.epochs.index)
		}
		k.advance(m.step, at)
		k.resumed = k.resumed || k.moves == 2 && k.bounds == 0 && k.runs == 0 && k.begunBefore()
	case m.step > k.done/2 && m.step > 0:
		// A line of a process that is behind another process.
	case k.complete() || c.epochs.index > k.index || k.done > few && (k.runs > 0 || k.outer >= 0):
		c.runAgain(i, m, at)
	case k.done > k.lag():
		if k.lower++; k.lower >= again || m.step == 0 && m.epoch < 0 {
			if c.main == i+1 {
				c.several = c.several || m.step <= k.done/10
				c.restart()
			}
			k.done, k.from, k.latest, k.lower = m.step, m.step, at, 0
		}
	}
	c.refute(i)
}

// weak reports whether a counter counts epochs, shares or figures.
func (k *counter) weak() bool { return k.unit == EpochsU || k.unit == Shares || k.form == Figure }

// newEpoch processes a line that has a later epoch and a step.
func (k *counter) newEpoch(index, step, at float64) {
	if k.scope == scopeRun {
		k.overall = true
	} else if k.done > 0 && step >= k.done && (k.total == 0 || k.done < 0.95*k.total) {
		if k.through++; k.through >= 2 || step <= k.done+2*k.stride {
			k.overall = true
		}
	} else {
		k.overall, k.through = false, 0
		k.length = max(k.length, k.done)
	}
	k.boundary, k.index = k.done, index
	k.bounds++
	k.active += at - k.latest
	k.done, k.latest, k.lower = step, at, 0
	if at > k.moved {
		k.moves, k.moved = k.moves+1, at
	}
}

// nextRun begins the next of several equal runs.
func (c *counters) nextRun() {
	c.epochs = epochs{known: c.epochs.known, total: c.epochs.total, fromOne: c.epochs.fromOne, told: c.epochs.told}
	for i := range c.list[:c.n] {
		k := &c.list[i]
		k.length = max(k.length, k.done)
		k.done, k.runs, k.index, k.through, k.boundary, k.outerDone, k.from, k.lower = 0, 0, 0, 0, 0, 0, 0, 0
	}
}

// setting reads a line about the run's length. It reports whether the line was one.
func (c *counters) setting(line string) bool {
	found := c.told.read(line)
	if found && !c.epochs.told {
		c.epochs.total = c.told.epochs.get()
	}
	return found
}

// runsThrough reports whether a counter can count through all epochs, because its share
// of its total is about the share of epochs that are over. Lines that come once in
// several epochs may show rising steps of each.
func (c *counters) runsThrough(k *counter) bool {
	if k.total <= 0 || c.epochs.total <= 0 {
		return true
	}
	epoch := 1 / c.epochs.total
	share := k.done/k.total - c.epochs.index*epoch
	return share > -2*epoch && share < 2*epoch
}

// countsOn processes a step that is higher than before although a line has begun another
// epoch. The counter then counts through epochs, unless this was the last line of its
// run.
func (k *counter) countsOn(step, index float64) {
	within := k.total > 0 && k.done < 0.9*k.total && k.stride > 0 && step-k.done <= 2*k.stride
	if k.through == 0 {
		k.before = k.done
	}
	if k.through++; k.through >= again || within {
		k.overall, k.through = true, 0
		k.boundary, k.index = k.before, index
		k.bounds++
	}
}

// runAgain begins another run of a counter, which is the next epoch.
func (c *counters) runAgain(i int, m mark, at float64) {
	k := &c.list[i]
	k.length = max(k.length, k.done)
	k.overall, k.through, k.lower, k.fresh = false, 0, 0, few
	k.runs++
	if k.weak() || k.scope == scopeRun {
		c.several = true
		if c.main == i+1 {
			c.version++
		}
	}
	if m.epoch < 0 && k.outer < 0 && c.main == i+1 && c.epochs.known && c.epochs.index == k.index && !k.weak() {
		c.epochs.index++ // the line with the epoch comes at the epoch's end, or never
	}
	k.index = c.epochs.index
	k.active += at - k.latest
	k.done, k.latest = m.step, at
	if k.outer >= 0 {
		k.outerDone = c.list[k.outer].done
	}
}

// restart resets the count after the program has started again, or begun to train another
// model.
func (c *counters) restart() {
	c.version++
	c.left = timeLeft{anew: c.left.anew}
	for i := range c.list[:c.n] {
		k := &c.list[i]
		k.done, k.runs, k.index, k.overall, k.through, k.boundary, k.outerDone, k.from = 0, 0, c.epochs.index, false, 0, 0, 0, 0
	}
}

// nest finds the bar in which a new bar without an epoch of its own runs: the latest that
// is not complete. If the outer bar has moved by more than one since it began, the new
// bar is an evaluation within it, else a part of its step.
func (c *counters) nest(i int) {
	k := &c.list[i]
	if k.form != Tqdm || k.strength == 3 && c.epochs.known {
		return
	}
	best := -1
	for j := range c.list[:c.n] {
		o := &c.list[j]
		if j == i || o.form != Tqdm && o.form != Lightning && o.form != YOLO || o.aside || o.total == 0 || o.done >= o.total || o.unit == EpochsU || o.outer >= 0 && o.outer == i {
			continue
		}
		if best < 0 || o.latest >= c.list[best].latest {
			best = j
		}
	}
	if best < 0 {
		return
	}
	o := &c.list[best]
	switch {
	case o.done-o.from > 1 || o.form != Tqdm:
		k.aside = k.strength < 3
		k.outer = best
	case o.outer < 0:
		k.outer, k.outerDone = best, o.done
	}
}

// refute treats a bar as an evaluation if the outer bar has moved by two without it. If
// the outer bar has not moved since the bar began, and the bar has run for longer than
// rest, the bar is no evaluation, and the outer bar does not count until it moves again.
func (c *counters) refute(i int) {
	const rest = 60 // seconds
	k := &c.list[i]
	for j := range c.list[:c.n] {
		in := &c.list[j]
		if in.outer != i {
			continue
		}
		if !in.aside && k.done-in.outerDone >= 2 || k.rests && k.latest > in.first {
			in.aside = true
		}
	}
	if k.rests && k.seen > 1 {
		k.rests = false
	}
	if o := k.outer; k.aside && o >= 0 && c.list[o].latest < k.first && k.active > max(rest, c.list[o].active) {
		k.aside = false
		c.list[o].rests = true
	}
}

// choose finds the training's counter. It is the strongest counter, and of equally strong
// ones the counter that has moved for the longest time. Another counter replaces it only
// if it is clearly ahead.
func (c *counters) choose(at float64) {
	best := -1
	for i := range c.list[:c.n] {
		if c.list[i].aside || c.list[i].rests || c.isOuter(i) || !c.list[i].counts() {
			continue
		}
		if best < 0 || c.ahead(i, best) {
			best = i
		}
	}
	if best < 0 {
		return
	}
	if c.main > 0 && best != c.main-1 {
		old, next := &c.list[c.main-1], &c.list[best]
		if !old.aside && !c.isOuter(c.main-1) && old.strength >= next.strength && next.active < 1.25*old.active {
			return
		}
	}
	c.main = best + 1
}

func (c *counters) ahead(i, j int) bool {
	a, b := &c.list[i], &c.list[j]
	if a.strength != b.strength {
		return a.strength > b.strength
	}
	return a.active > b.active
}

// isOuter reports whether another counter counts the parts of this counter's steps.
func (c *counters) isOuter(i int) bool {
	for j := range c.list[:c.n] {
		if c.list[j].outer == i && !c.list[j].aside && !c.list[i].rests {
			return true
		}
	}
	return false
}
