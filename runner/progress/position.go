package progress

// position is the position of the training in its run.
type position struct {
	done, total   float64 // total is 0 if unknown
	unit          string
	form          Form
	epoch, epochs float64 // the current epoch, from 1, and the number of epochs, or 0 if unknown
	doubt         Doubt   // reason why total may not be the run's
	scale         scale
}

// scale identifies the counted unit. Counts of different scales do not compare.
type scale int

const (
	ofSteps scale = iota // steps of the current and all previous epochs
	ofRun                // steps of a counter that counts through the whole run
	ofParts              // counts of epochs or shares
)

// inner reports whether a counter's runs are the steps of another.
func (c *counters) inner(k *counter) bool {
	return k.outer >= 0 && !k.aside && !c.list[k.outer].rests
}

// epochOf returns the epoch of a counter, from 0, and the number of epochs, if known.
func (c *counters) epochOf(k *counter) (index, total float64, known bool) {
	switch {
	case c.inner(k):
		return c.list[k.outer].done, c.list[k.outer].total, true
	case c.epochs.known:
		return c.epochs.index, c.epochs.total, true
	}
	return k.runs, 0, false
}

// position returns the position of the training's counter, which must exist.
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
		p.done, p.total, p.scale = k.done, c.epochs.total, ofParts
		p.setEpoch(float64(int64(k.done)), p.total)
	case k.weak():
		p.done, p.total, p.scale = k.done, k.total, ofParts
		if k.unit == EpochsU && p.total == 0 {
			p.total = c.epochs.total
		}
		if k.unit == Shares && k.scope != scopeRun && (known || k.form == Tqdm) {
			p.doubt = PerhapsOf
		}
	case k.overall, k.resumed && k.runs == 0:
		p.done, p.total, p.scale = k.done, k.total, ofRun
		if p.total == 0 {
			p.total = c.throughTotal(k, total)
		}
	case p.form == Trainer:
		p.done, p.total = k.done, k.total
	case !known && k.runs == 0:
		p.done, p.total = k.done, k.total
		if k.scope == scopeEpoch || k.form == Tqdm || k.form == Bare {
			p.doubt = PerhapsOf
		}
	default:
		p.done, p.total = index*length+c.within(k), total*length
		if k.scope != scopeEpoch && k.runs == 0 && k.bounds == 0 && !c.inner(k) {
			p.doubt = PerhapsOf
		}
	}
	if p.total == 0 {
		p.doubt = NoDoubt
		c.extend(&p, k)
	}
	if p.doubt == NoDoubt && known && c.epochs.back && !c.inner(k) {
		p.doubt = SeveralRuns
	}
	if p.total > 0 && p.doubt == NoDoubt && known && c.epochs.open && c.epochs.total < openLeast && !c.inner(k) && (!k.overall || k.total == 0) {
		p.doubt = LastEpoch
	}
	if p.total > 0 && p.doubt == NoDoubt && c.epochs.total > 0 && known && !k.overall && index >= total {
		p.doubt = SeveralRuns // above the last epoch
	}
	c.ofSeveral(&p)
	return p
}

// throughTotal returns the total of a counter that counts through the epochs and prints
// none, or 0. It multiplies the steps of the epochs so far, or returns the number of
// steps from the program's printed settings if that agrees. The last epoch may be shorter
// than the others.
func (c *counters) throughTotal(k *counter, epochs float64) float64 {
	const exact = 0.03 // the count when the epoch began is known to a line
	var total float64
	if k.index > 0 && k.boundary > 0 && k.stride <= exact*k.boundary {
		total = (k.boundary + k.stride/2) / k.index * epochs
	}
	steps := c.told.runSteps.get()
	switch {
	case steps > 0 && k.unit == Steps && steps <= 1.01*total && steps*epochs >= 0.99*total*(epochs-1):
		return steps
	case c.left.total > 0 && !c.epochs.told, steps > 0:
		return 0
	}
	return total
}

// extend takes the total from the settings or from the printed time to the end.
func (c *counters) extend(p *position, k *counter) {
	steps := c.told.runSteps.get()
	switch {
	case c.left.total > 0:
		p.total = c.left.total
		if !c.left.steady() {
			p.doubt = Irregular
		}
	case k.unit == Images && k.scope == scopeRun && c.told.runImages.get() >= p.done:
		p.total = c.told.runImages.get()
	case steps >= p.done && k.unit == Steps && c.told.epochs == 0 && !c.epochs.known && k.runs == 0:
		p.total = steps
	}
}

// ofSeveral extends a position in one of several equal runs to all of them.
func (c *counters) ofSeveral(p *position) {
	switch {
	case c.outer.explains():
		if p.total > 0 {
			p.done, p.total = c.outer.index*p.total+min(p.done, p.total), c.outer.total*p.total
		}
	case c.outer.known, c.several:
		p.doubt = SeveralRuns
	}
}

// within returns the steps done in the current epoch, or 0 if the counter was last seen
// in the previous epoch.
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
