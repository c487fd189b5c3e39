package step

// mostLive is the largest number of parameters that ZeRO 3 gathers. From the second step
// on, ZeRO 3 prefetches up to this number (stage3_max_live_parameters), and keeps a weight
// that is used again within this distance (stage3_max_reuse_distance).
const mostLive = 1_000_000_000

// live contains the weights that ZeRO 3 has gathered. For simplicity the simulation
// gathers the last weights of the network.
type live struct {
	whole []chunk // by weight
	bytes int64
}

// putTogether begins a pass of ZeRO 3 and gathers weights.
func (r *run) putTogether() error {
	r.live = live{whole: make([]chunk, len(r.weights))}
	var numbers int64
	for i := len(r.weights) - 1; i >= 0; i-- {
		w := &r.weights[i]
		if numbers += w.numbers(); numbers > mostLive && i < len(r.weights)-1 {
			break
		}
		c, err := r.take(r.gathered(w), Weights)
		if err != nil {
			return err
		}
		r.live.whole[i] = c
		r.live.bytes += c.bytes
	}
	return nil
}

// passed frees gathered weights after the gradients of layer l. It frees the part that
// exceeds the weights of the layers whose gradients are still to be computed.
func (r *run) passed(l *layer) {
	if r.stage() != 3 || len(l.weights) == 0 {
		return
	}
	var left int64
	for i := range r.weights[:l.weights[0]] {
		left += r.gathered(&r.weights[i])
	}
	for i := len(r.live.whole) - 1; i >= 0 && r.live.bytes > left; i-- {
		if c := &r.live.whole[i]; c.held {
			r.live.bytes -= c.bytes
			r.release(c)
		}
	}
}
