package models

import "cmp"

// With returns a copy of c with other settings of the training. It refuses sizes that
// would change the layers; only the catalogue's families support those.
func (c *Config) With(o Overrides) (*Config, error) {
	if err := o.fixed(c.Name); err != nil {
		return nil, err
	}
	out := *c
	out.Train = o.Train(c.Train)
	if out.Train.Checkpointing && !c.Train.Checkpointing && !c.blocks() {
		out.Warnings = append(append([]string(nil), c.Warnings...), "no layer is in a block, so checkpointing recomputes nothing")
	}
	out.Layers = append([]Layer(nil), c.Layers...)
	out.Normalize()
	if err := out.Validate(); err != nil {
		return nil, err
	}
	return &out, nil
}

// fixed refuses settings that would change fixed layers.
func (o *Overrides) fixed(name string) error {
	for i := range settings {
		if s := &settings[i]; s.Layers && s.Text(o) != "" {
			return wrong(cmp.Or(s.Short, s.Name), "the layers of %s are fixed; leave it out", name)
		}
	}
	return nil
}

// Train returns t with the settings of o.
func (o *Overrides) Train(t Train) Train {
	set(&t.Batch, o.Batch)
	set(&t.Accumulate, o.Accumulate)
	set(&t.SequenceParallel, o.SequenceParallel)
	set(&t.GPUs, o.GPUs)
	set(&t.Precision, o.Precision)
	set(&t.Optimizer, o.Optimizer)
	set(&t.Implementation, o.Implementation)
	set(&t.Parallel, o.Parallel)
	set(&t.Masters, o.Masters)
	set(&t.Attention, o.Attention)
	set(&t.Padded, o.Padded)
	set(&t.Compile, o.Compile)
	set(&t.Loss, o.Loss)
	set(&t.Offload, o.Offload)
	if o.Checkpointing != nil {
		t.Checkpointing = *o.Checkpointing
	}
	return t
}

func set[T comparable](to *T, value T) {
	var zero T
	if value != zero {
		*to = value
	}
}

func (c *Config) blocks() bool {
	for i := range c.Layers {
		if c.Layers[i].Block > 0 {
			return true
		}
	}
	return false
}
