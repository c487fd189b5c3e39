package step

// forward runs layers from up to to. Without keeping it is the first pass over
// a checkpointed block, of which only what other blocks use stays.
func (r *run) forward(from, to int, keeping bool) error {
	for i := from; i < to; i++ {
		if b := r.layers[i].block; keeping && b > 0 && r.train.Checkpointing {
			end := r.blockEnd(i)
			r.keepBlockInputs(i, end, 1)
			if err := r.forward(i, end, false); err != nil {
				return err
			}
			i = end - 1
			continue
		}
		if err := r.layer(i, keeping); err != nil {
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
	if err := r.workspace(l, r.env.Forward); err != nil {
		return err
	}
	if l.extra > 0 && l.grad {
		if err := r.extra(i, l.extra); err != nil {
			return err
		}
	}
	if l.kind == crossEntropy && l.grad {
		if err := r.extra(i, r.values[l.inputs[0]].bytes); err != nil { // the log-softmax
			return err
		}
	}
	if keeping {
		for _, k := range l.kept {
			r.saves[k]++
		}
	} else {
		r.releaseAll(r.extras[i])
		r.extras[i] = r.extras[i][:0]
	}
	r.finish(i, l)
	return nil
}

// extra allocates memory that lives until the layer's gradient is computed.
func (r *run) extra(i int, bytes int64) error {
	c, err := r.take(bytes, Activations)
	r.extras[i] = append(r.extras[i], c)
	return err
}

// finish frees what layer i was the last to use.
func (r *run) finish(i int, l *layer) {
	if i == len(r.layers)-1 {
		return // the script holds the loss and what it is computed from
	}
	r.end(i, r.values[l.value].storage)
	for _, v := range l.inputs {
		r.end(i, r.values[v].storage)
	}
}

func (r *run) end(i int, s int32) {
	if int(r.storages[s].lastUse) <= i {
		r.alive[s] = false
		r.drop(s)
	}
}

// blockEnd is the end of the run of layers in i's block.
func (r *run) blockEnd(i int) int {
	b := r.layers[i].block
	for i < len(r.layers) && r.layers[i].block == b {
		i++
	}
	return i
}

// keepBlockInputs keeps (n = 1) or lets go (n = -1) of what layers from up to
// to take from outside.
func (r *run) keepBlockInputs(from, to int, n int32) {
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
