package predict

// correct applies the corrections to predicted speeds of tasks on one GPU.
func (p *pairs) correct(of []Demand, speeds []float64) {
	if len(p.all) == 0 {
		return
	}
	for i := range of {
		if of[i].Kind == 0 {
			continue
		}
		factor := 1.0
		for j := range of {
			if i != j && of[j].Kind != 0 {
				factor *= p.factor(of[i].Kind, of[j].Kind)
			}
		}
		if factor != 1 {
			speeds[i] = max(SlowestSpeed, min(1, speeds[i]*factor))
		}
	}
}

// factor returns the correction of a predicted speed, or 1 if the pair was not measured.
func (p *pairs) factor(of, beside int32) float64 {
	if of < nearKinds && beside < nearKinds {
		if int(of) >= len(p.near) || int(beside) >= len(p.near[of]) || p.near[of][beside] == 0 {
			return 1
		}
		return p.near[of][beside]
	}
	if int(of) >= len(p.partners) {
		return 1
	}
	if len(p.partners[of]) > fewPartners {
		if k, ok := p.index[[2]int32{of, beside}]; ok {
			return p.factors[k]
		}
		return 1
	}
	for _, o := range p.partners[of] {
		if o.kind == beside {
			return p.factors[o.at]
		}
	}
	return 1
}

// fewPartners is the largest number of kinds that is searched linearly.
const fewPartners = 16

// partner is a kind beside which another was measured, and the index of their correction.
type partner struct{ kind, at int32 }

// nearKinds is the number of kinds whose factors are also kept in a table: most
// predictions concern these.
const nearKinds = 256
