package step

import "carma/configs/models"

// gathering is FSDP2's memory besides a GPU's own shards (fully_shard of each block and
// of the rest, PyTorch 2.15). FSDP2 gathers the shards of a block into one buffer and
// copies them to the weights, which exist while the block runs. During the backward pass
// of a block, it prefetches the buffer of the preceding block. Gradients are whole until
// the end of the block. Then the weights are freed, and the gradients are copied into a
// buffer that is reduced over the GPUs and stays until the next block's buffer replaces
// it. Parameters outside of blocks stay whole during the pass.
type gathering struct {
	blocks                    map[int]gathered
	inside                    int // the running block, or 0
	whole                     map[int]*chunk
	rest, buffer, next, grads chunk
	reduced                   chunk
}

// gathered contains the bytes of a block's whole weights, of its whole gradients, and of
// the buffer in which the gradients are reduced.
type gathered struct{ weights, grads, reduced int64 }

// fsdp reports whether FSDP gathers the parts of blocks.
func (r *run) fsdp() bool {
	return r.shards > 1 && (r.train.Parallel == models.FSDP || r.train.Parallel == models.FSDPGrad)
}

// gatherable returns the sizes of the blocks. With mixed precision (amp), gradients are
// reduced in 32 bits.
func (r *run) gatherable() map[int]gathered {
	blocks := map[int]gathered{}
	for i := range r.weights {
		w := &r.weights[i]
		b := blocks[w.block]
		b.weights += r.gathered(w)
		if w.trainable {
			b.grads += r.gathered(w)
			b.reduced += w.bytes
		}
		blocks[w.block] = b
	}
	return blocks
}

// at records that layers of a block run now, or layers outside of blocks if block is 0.
// back is set in the backward pass.
func (r *run) at(block int, back bool) (err error) {
	g := &r.gathering
	if !r.fsdp() || block == g.inside {
		return nil
	}
	if err := r.leave(back); err != nil {
		return err
	}
	g.inside = block
	if block == 0 {
		return nil
	}
	b := g.blocks[block]
	if g.whole[block] == nil {
		r.release(&g.next)
		if g.buffer, err = r.take(b.weights, Weights); err != nil {
			return err
		}
		c, err := r.take(b.weights, Weights)
		if err != nil {
			return err
		}
		r.release(&g.buffer)
		g.whole[block] = &c
	}
	if !back {
		return nil
	}
	if g.grads, err = r.take(b.grads, Gradients); err != nil {
		return err
	}
	if before, ok := g.blocks[block-1]; ok && block > 1 && g.whole[block-1] == nil {
		g.next, err = r.take(before.weights, Weights)
	}
	return err
}

// leave ends the block that has run.
func (r *run) leave(back bool) (err error) {
	g := &r.gathering
	if g.inside == 0 {
		return nil
	}
	if back || r.train.Parallel == models.FSDP {
		r.release(g.whole[g.inside])
		delete(g.whole, g.inside)
	}
	if back {
		r.release(&g.reduced)
		if g.reduced, err = r.take(g.blocks[g.inside].reduced, Gradients); err != nil {
			return err
		}
		r.release(&g.grads)
	}
	g.inside = 0
	return nil
}

// gatherRest gathers the weights outside of blocks, for a pass.
func (r *run) gatherRest() (err error) {
	r.gathering = gathering{blocks: r.gatherable(), whole: map[int]*chunk{}}
	r.gathering.rest, err = r.take(r.gathering.blocks[0].weights, Weights)
	return err
}

// reduceRest reduces the gradients of weights outside of blocks, at the end of a pass.
func (r *run) reduceRest() error {
	if !r.fsdp() {
		return nil
	}
	g := &r.gathering
	if err := r.leave(true); err != nil {
		return err
	}
	r.release(&g.next)
	r.release(&g.rest)
	whole, err := r.take(g.blocks[0].grads, Gradients)
	if err != nil {
		return err
	}
	if err != nil {
		return err
	}
	r.release(&g.reduced)
	sum, err := r.take(g.blocks[0].reduced, Gradients)
	r.release(&whole)
	r.release(&sum)
	return err
}
