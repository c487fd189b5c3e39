package step

import "carma/configs/models"

// held returns the values that the program still references while layer i runs.
func (p *planner) held(i int, l *models.Layer) (values []int32, err error) {
	for _, at := range l.Holds {
		v, ok := p.input(i, at)
		if !ok || at < 0 {
			return nil, errAt(i, l, "holds the output of layer %d, which does not come before it", at+1)
		}
		values = append(values, v)
	}
	return values, nil
}

// giveBack frees the values that the program held during the last layer.
func (r *run) giveBack(holds []int32) {
	for _, v := range holds {
		s := r.values[v].storage
		r.alive[s] = false
		r.drop(s)
	}
}
