package rivals

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/methods"
)

// most is the largest size that a method computes with, in elements or bytes. Products
// and sums of smaller sizes do not overflow.
const most = int64(1) << 56

// sum adds sizes. The sum is out of range if one of the sizes is.
type sum struct {
	n   int64
	bad bool
}

func (s *sum) add(factors ...int64) {
	n := int64(1)
	for _, f := range factors {
		switch {
		case f < 0:
			s.bad = true
			return
		case f == 0:
			return
		case n > most/f:
			s.bad = true
			return
		}
		n *= f
	}
	if s.n += n; s.n > most {
		s.n, s.bad = most, true
	}
}

// counts contains totals over a table of layers.
type counts struct {
	batch   int64 // samples on one GPU
	gpus    int64
	params  int64
	largest int64 // parameters of the largest layer
}

// config returns the subject's configuration and its counts. It fails if there is
// no configuration.
func config(s methods.Subject) (*models.Config, counts, error) {
	if s.Config == nil {
		return nil, counts{}, fmt.Errorf("no model configuration: %w", methods.ErrNotApplicable)
	}
	c := s.Config
	n := counts{batch: int64(max(c.Train.Batch, 1)), gpus: int64(max(c.Train.GPUs, 1))}
	if p := c.Train.Parallel; n.gpus > 1 && p != "" && p != models.NotParallel {
		n.batch = (n.batch-1)/n.gpus + 1
	}
	var all sum
	for i, l := range c.Layers {
		var own sum
		for _, p := range l.Params {
			own.add(p)
		}
		if !l.Tied {
			all.add(own.n)
		}
		if own.bad || all.bad {
			return nil, counts{}, fmt.Errorf("model %s: the parameters of layer %d (%s) are out of range", c.Name, i+1, l.Type)
		}
		n.largest = max(n.largest, own.n)
	}
	n.params = all.n
	return c, n, nil
}

// elements returns the product of a shape. It returns false if a dimension is below 1 or
// the product is out of range.
func elements(shape []int64) (int64, bool) {
	n := sum{}
	for _, d := range shape {
		if d <= 0 {
			return 0, false
		}
	}
	n.add(shape...)
	return n.n, !n.bad
}

// exactly returns an answer whose bound is its point.
func exactly(parts ...methods.Part) (methods.Answer, error) {
	var all sum
	for _, p := range parts {
		all.add(p.Bytes)
	}
	if all.bad {
		return methods.Answer{}, fmt.Errorf("the estimate is out of range")
	}
	return methods.Answer{Point: all.n, Upper: all.n, Parts: parts}, nil
}
