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
	plan *Plan
	use  *usage

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
func (p *Plan) fsdp() bool {
	return p.shards > 1 && (p.train.Parallel == models.FSDP || p.train.Parallel == models.FSDPGrad)
}

// gatherable returns the sizes of the blocks. With mixed precision (amp), gradients are
// reduced in 32 bits.
func (p *Plan) gatherable() map[int]gathered {
	blocks := map[int]gathered{}
	for i := range p.weights {
		w := &p.weights[i]
		b := blocks[w.block]
		b.weights += p.gathered(w)
		if w.trainable {
			b.grads += p.gathered(w)
			b.reduced += w.bytes
		}
		blocks[w.block] = b
	}
	return blocks
}

// at records that layers of a block run now, or layers outside of blocks if block is 0.
// back is set in the backward pass.
func (g *gathering) at(block int, back bool) (err error) {
	if !g.plan.fsdp() || block == g.inside {
		return nil
	}
	if err := g.leave(back); err != nil {
		return err
	}
	g.inside = block
	if block == 0 {
		return nil
	}
	b := g.blocks[block]
	if g.whole[block] == nil {
		g.use.release(&g.next)
		if g.buffer, err = g.use.take(b.weights, Weights); err != nil {
			return err
		}
		c, err := g.use.take(b.weights, Weights)
		if err != nil {
			return err
		}
		g.use.release(&g.buffer)
		g.whole[block] = &c
	}
	if !back {
		return nil
	}
	if g.grads, err = g.use.take(b.grads, Gradients); err != nil {
		return err
	}
	if before, ok := g.blocks[block-1]; ok && block > 1 && g.whole[block-1] == nil {
		g.next, err = g.use.take(before.weights, Weights)
	}
	return err
}

// leave ends the block that has run.
func (g *gathering) leave(back bool) (err error) {
	if g.inside == 0 {
		return nil
	}
	if back || g.plan.train.Parallel == models.FSDP {
		g.use.release(g.whole[g.inside])
		delete(g.whole, g.inside)
	}
	if back {
		g.use.release(&g.reduced)
		if g.reduced, err = g.use.take(g.blocks[g.inside].reduced, Gradients); err != nil {
			return err
		}
		g.use.release(&g.grads)
	}
	g.inside = 0
	return nil
}

// gatherRest gathers the weights outside of blocks, for a pass.
func (g *gathering) gatherRest() (err error) {
	*g = gathering{plan: g.plan, use: g.use, blocks: g.plan.gatherable(), whole: map[int]*chunk{}}
	g.rest, err = g.use.take(g.blocks[0].weights, Weights)
	return err
}

// reduceRest reduces the gradients of weights outside of blocks, at the end of a pass.
func (g *gathering) reduceRest() error {
	if !g.plan.fsdp() {
		return nil
	}
	if err := g.leave(true); err != nil {
		return err
	}
	g.use.release(&g.next)
	g.use.release(&g.rest)
	whole, err := g.use.take(g.blocks[0].grads, Gradients)
	if err != nil {
		return err
	}
	if err != nil {
		return err
	}
	g.use.release(&g.reduced)
	sum, err := g.use.take(g.blocks[0].reduced, Gradients)
	g.use.release(&whole)
	g.use.release(&sum)
	return err
}
