package step

// script contains the tensors that variables of the user's program hold between passes.
type script struct{ batch, results []chunk }

// passes returns the number of forward and backward passes that are simulated for a step
// of the optimizer. The second pass adds its gradients to the gradients of the first.
// Further passes would repeat the second.
func (p *Plan) passes() int { return max(min(p.train.Accumulate, 2), 1) }

// pass runs forwards and backwards once. The first pass of a step begins without
// gradients; ZeRO 1 adds them up over the GPUs in the last.
func (r *run) pass(s *script, first, last bool) error {
	next, err := r.batch()
	if err != nil {
		return err
	}
	r.releaseAll(s.batch) // the old batch stays until the new one is loaded
	s.batch = next
	if zero := r.train.ZeroGrad; first && (zero == "" || zero == "start") {
		r.zeroGrad()
	}
	together, err := r.unshard()
	if err != nil {
		return err
	}
	before := r.nodes // the old loss holds these nodes until the next loss exists
	r.nodes = nil
	if err := r.forward(0, len(r.layers), true); err != nil {
		return err
	}
	r.releaseAll(s.results) // the old results also stay until the new ones exist
	r.releaseAll(before)
	if first && r.train.ZeroGrad == "backward" {
		r.zeroGrad()
	}
	gathered, err := r.gather()
	if err != nil {
		return err
	}
	if err := r.backward(); err != nil {
		return err
	}
	if err := r.collected(last); err != nil {
		return err
	}
	r.releaseAll(together)
	s.results = append(r.detach(), gathered)
	return nil
}
