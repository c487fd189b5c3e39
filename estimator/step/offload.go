package step

import "carma/configs/models"

// Offloading as PyTorch and DeepSpeed do it:
//
// The optimizer's states are on the host, with their 32-bit copies of weights, and the
// step runs there: nothing of it is on the GPU. With ZeRO, gradients are copied to the
// host as soon as they are added up (ZeRO-Offload, arXiv 2101.06840, section 4); else
// they stay (torchao's CPUOffloadOptimizer without offload_gradients).
//
// Parameters are on the host with their gradients; blocks are copied to the GPU while
// they are used (FSDP's CPUOffloadPolicy, ZeRO-Infinity, arXiv 2104.07857).
//
// Activations: what autograd keeps is copied to the host when it is kept, and comes
// back, a layer's at a time, when its gradient is computed
// (torch.autograd.graph.save_on_cpu). With checkpointing these are the blocks' inputs;
// within a block nothing is copied. A weight is not copied.

// hostStates reports whether the optimizer's states are on the host.
func (r *run) hostStates() bool { return r.train.Offloads(models.OffloadOptimizer) }

// hostGradients reports whether gradients leave the GPU when they are whole.
func (r *run) hostGradients() bool {
	if r.train.Offloads(models.OffloadParameters) {
		return true
	}
	return r.stage() > 1 && r.hostStates()
}

func (r *run) hostWeights() bool { return r.train.Offloads(models.OffloadParameters) }

// fetch brings back what layer i has kept.
func (r *run) fetch(i int) error {
	l := &r.layers[i]
	n := l.extra + l.clone + l.cast
	if l.kind == crossEntropy && l.chunks == nil {
		n += r.wide(l)
	}
	for _, s := range l.kept {
		n += r.storages[s].bytes
	}
	return r.extra(i, n)
}

// fetchInputs brings back the inputs of a checkpointed block, whose layers are from up
// to, but without, to.
func (r *run) fetchInputs(from, to int) (chunk, error) {
	if !r.away {
		return chunk{}, nil
	}
	first, n := r.layers[from].value, int64(0)
	seen := map[int32]bool{}
	for i := from; i < to; i++ {
		for _, v := range r.layers[i].inputs {
			if s := r.values[v].storage; v < first && !seen[s] && !r.memory[s].held {
				seen[s] = true
				n += r.storages[s].bytes
			}
		}
	}
	return r.take(n, Activations)
}
