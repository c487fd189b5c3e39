package progress

// position is where the training stands.
type position struct {
	done, total   float64 // total 0: not known
	unit          string
	form          Form
	epoch, epochs float64 // the present one, from 1; 0: not known
	whole         bool    // total is the run's, not perhaps one epoch's
	scale         scale
}

// scale says what is counted. Counts of different scales do not compare.
type scale int

const (
	ofSteps scale = iota // of this epoch and the ones before
	ofRun                // by a counter that goes through
	ofParts              // by a counter of epochs or shares
)

// inner reports whether a counter's runs are the steps of another.
func (c *counters) inner(k *counter) bool {
	return k.outer >= 0 && !k.aside && !c.list[k.outer].rests
}

// epochOf is the epoch of a counter, from 0, and of how many, if that is known.
func (c *counters) epochOf(k *counter) (index, total float64, known bool) {
	switch {
	case c.inner(k):
		return c.list[k.outer].done, c.list[k.outer].total, true
	case c.epochs.known:
		return c.epochs.index, c.epochs.total, true
	}
	return k.runs, 0, false
}

// position of the training's counter; there must be one.
func (c *counters) position() position {
	k := &c.list[c.main-1]
	index, total, known := c.epochOf(k)
	p := position{unit: k.unit, form: k.form}
	if known {
		p.setEpoch(index, total)
	}
	if c.trainer && k.form == Tqdm && k.runs == 0 && k.outer < 0 {
		p.form = Trainer
	}
	length := k.total
	if length == 0 {
		length = k.length
	}
	switch {
	case k.form == Dictionary && k.weak():
		p.done, p.total, p.whole, p.scale = k.done, c.epochs.total, true, ofParts
		p.setEpoch(float64(int64(k.done)), p.total)
	case k.weak():
		p.done, p.total, p.whole, p.scale = k.done, k.total, true, ofParts
	case k.overall:
		p.done, p.total, p.whole, p.scale = k.done, k.total, true, ofRun
		if p.total == 0 && index > 0 && k.boundary > 0 {
			p.total = k.boundary / index * total
		}
	case p.form == Trainer:
		p.done, p.total, p.whole = k.done, k.total, true
	case !known && k.runs == 0:
		p.done, p.total = k.done, k.total
		p.whole = k.form != Tqdm && k.form != Keras
	default:
		p.done, p.total, p.whole = index*length+c.within(k), total*length, true
	}
	if p.total == 0 {
		p.total, p.whole = c.estimated, true
	}
	if p.total > 0 {
		p.total = max(p.total, p.done)
	}
	return p
}

// within is the steps done in the present epoch: none if the counter was last
// seen in the one before.
func (c *counters) within(k *counter) float64 {
	switch {
	case c.inner(k) && c.list[k.outer].done > k.outerDone, !c.inner(k) && c.epochs.known && c.epochs.index > k.index:
		return 0
	}
	return k.done
}

func (p *position) setEpoch(index, total float64) {
	p.epoch, p.epochs = index+1, total
	if total > 0 {
		p.epoch = min(p.epoch, total)
	}
}

// estimate works out the total from the time to the run's end that a line has:
// the program knows the total, and its speed is that of the whole run so far.
func (c *counters) estimate(s *pace, m mark, done float64) {
	const enough = 4 // intervals
	n := s.count
	if m.left < 0 || n <= enough {
		return
	}
	speed, ok := s.overall()
	if !ok {
		return
	}
	total := done + m.left*speed
	if c.estimated == 0 {
		c.estimated = total
	}
	c.estimated += (total - c.estimated) / 8
}
