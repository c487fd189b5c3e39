package step

// forward runs the layers from from to to-1. If keeping is false, it is the first run of a
// checkpointed block, after which only values that other blocks use remain.
func (r *run) forward(from, to int, keeping bool) error {
	for i := from; i < to; i++ {
		if err := r.gathering.at(r.layers[i].block, r.back); err != nil {
			return err
		}
		if b := r.layers[i].block; keeping && b > 0 && r.train.Checkpointing {
			end := r.blockEnd(i)
			r.keepBlockInputs(i, end, 1)
			if err := r.forward(i, end, false); err != nil {
				return err
			}
			i = end - 1
			continue
		}
		if err := r.layer(i, keeping && !r.away); err != nil {
			return err
		}
	}
	return nil
}

// layer runs one layer forwards.
func (r *run) layer(i int, keeping bool) error {
	l := &r.layers[i]
	s := r.values[l.value].storage
	if l.clone > 0 && keeping {
		if err := r.extra(i, l.clone); err != nil {
			return err
		}
	}
	if !l.alias {
		c, err := r.take(l.out, Activations)
		if err != nil {
			return err
		}
		r.memory[s] = c
	}
	r.alive[s] = true
	if l.cast > 0 {
		if err := r.extra(i, l.cast); err != nil {
			return err
		}
	}
	if err := r.temporary(l.meanwhile, Weights); err != nil {
		return err
	}
	if err := r.workspace(l, r.env.Forward); err != nil {
		return err
	}
	if err := r.scores(i, l); err != nil {
		return err
	}
	if l.chunks != nil && l.grad {
		if err := r.chunkedLoss(i, l.chunks); err != nil {
			return err
		}
	} else if l.kind == crossEntropy && l.grad {
		if err := r.logSoftmax(i, l.inputs[0]); err != nil {
			return err
		}
	}
	r.attach(l)
	if keeping {
		for _, k := range l.kept {
			r.saves[k]++
		}
	}
	if !keeping || !l.grad { // autocast caches copies of trained weights only
		r.releaseExtras(i)
	}
	r.finish(i, l)
	return nil
}

// extra allocates memory that stays until the layer's gradient is computed.
func (r *run) extra(i int, bytes int64) error {
	c, err := r.take(bytes, Activations)
	x := &r.extras[i]
	x.chunks[x.n] = c
	x.n++
	return err
}

func (r *run) releaseExtras(i int) {
	x := &r.extras[i]
	r.releaseAll(x.chunks[:x.n])
	x.n = 0
}

// finish frees the storages whose last user was layer i.
func (r *run) finish(i int, l *layer) {
	if i == len(r.layers)-1 {
		return // the script keeps the loss and the loss's inputs
	}
	r.end(i, r.values[l.value].storage)
	for _, v := range l.inputs {
		r.end(i, r.values[v].storage)
	}
	for _, v := range l.holds {
		r.end(i, r.values[v].storage)
	}
}

func (r *run) end(i int, s int32) {
	if int(r.storages[s].lastUse) <= i {
		r.alive[s] = false
		r.drop(s)
	}
}

// blockEnd returns the index after the last layer of i's block.
func (r *run) blockEnd(i int) int {
	b := r.layers[i].block
	for i < len(r.layers) && r.layers[i].block == b {
		i++
	}
	return i
}

// keepBlockInputs marks the inputs of a block as kept (n = 1) or as no longer kept
// (n = -1). The block has the layers from to to-1.
func (r *run) keepBlockInputs(from, to int, n int32) {
	if r.away {
		return
	}
	first := r.layers[from].value
	for i := from; i < to; i++ {
		for _, v := range r.layers[i].inputs {
			if v < first {
				s := r.values[v].storage
				r.saves[s] += n
				r.drop(s)
			}
		}
	}
}
