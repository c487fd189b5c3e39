package step

import "carma/configs/models"

// Products with quantized weights as bitsandbytes 0.50 computes them on a GPU
// (autograd/_functions.py, backends/cuda/ops.py).
//
// With 4 bits, the weight is dequantized to 16 bits for each multiplication, in both
// directions. A special kernel avoids this for less than some 1500 rows. It does not
// exist on all GPUs, so it is not counted.
//
// With 8 bits, the input is rounded to 8 bits. The product has 32-bit integers, then
// 16-bit numbers, then the input's type. For the gradient the weight is dequantized again
// to the input's type. The input itself is an attribute of the product's node
// (MatMul8bitLt: ctx.tensors), not one of autograd's saved tensors. So it stays with its
// node: checkpointing and offloading do not affect it, and the backward pass does not
// free it. It is freed when the script has the next loss. The part above the threshold of
// 6 depends on the values and is not counted.

// quantized sets the temporary memory of a product with a quantized weight of n numbers,
// and the inputs that its node keeps.
func (p *planner) quantized(l *models.Layer, out *layer, n int64) {
	if l.Bits == 4 {
		out.dequantized = max(out.dequantized, 2*n)
		out.meanwhile = out.dequantized
		return
	}
	in := p.values[out.inputs[0]]
	out.dequantized = max(out.dequantized, in.element*n)
	out.meanwhile = in.bytes/max(in.element, 1) + 6*(out.out/max(in.element, 1))
	if in.grad {
		out.attached = in.storage
	}
}

// attach makes the node of an 8-bit product keep the product's input.
func (r *run) attach(l *layer) {
	if l.attached != none && !r.back {
		r.pinned[l.attached] = true
	}
}

// unpin moves a storage that only a node keeps to r.nodes. It returns false if no node
// keeps it.
func (r *run) unpin(s int32) bool {
	if !r.pinned[s] {
		return false
	}
	r.pinned[s] = false
	r.nodes = append(r.nodes, r.memory[s])
	r.memory[s] = chunk{}
	return true
}
