package step

import "carma/configs/models"

// Offloading follows PyTorch and DeepSpeed:
//
// With an offloaded optimizer, its states and the 32-bit copies of weights are on the
// host. The optimizer's step runs on the host and uses no GPU memory. With ZeRO, gradients
// are copied to the host as soon as they are reduced (ZeRO-Offload, arXiv 2101.06840,
// section 4). Otherwise they stay on the GPU (torchao's CPUOffloadOptimizer without
// offload_gradients).
//
// Offloaded parameters are on the host with their gradients. Each block is copied to the
// GPU while it is used (FSDP's CPUOffloadPolicy, ZeRO-Infinity, arXiv 2104.07857).
//
// Offloaded activations: the tensors that autograd keeps are copied to the host, and copied
// back, one layer at a time, when the layer's gradient is computed
// (torch.autograd.graph.save_on_cpu). With checkpointing, only the blocks' inputs are
// copied, nothing within a block. Weights are not copied.

// hostStates reports whether the optimizer's states are on the host.
func (p *Plan) hostStates() bool { return p.train.Offloads(models.OffloadOptimizer) }

// hostGradients reports whether gradients leave the GPU when they are whole.
func (p *Plan) hostGradients() bool {
	if p.train.Offloads(models.OffloadParameters) {
		return true
	}
	return p.stage() > 1 && p.hostStates()
}

func (p *Plan) hostWeights() bool { return p.train.Offloads(models.OffloadParameters) }

// fetch copies the tensors that layer i keeps back to the GPU.
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

// fetchInputs copies the inputs of a checkpointed block back to the GPU. The block has the
// layers from to to-1.
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
