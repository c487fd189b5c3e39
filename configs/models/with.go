package models

// With returns c with other settings of the training; c stays as it is. The
// layers of a configuration are fixed: sizes that change them are for the
// catalogue's families.
func (c *Config) With(o Overrides) (*Config, error) {
	if err := o.fixed(c.Name); err != nil {
		return nil, err
	}
	out := *c
	out.Train = o.train(c.Train)
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

// fixed refuses sizes that the layers have once and for all.
func (o *Overrides) fixed(name string) error {
	for _, fixed := range []struct {
		field string
		value int
	}{{"image", o.Image}, {"seq", o.Sequence}, {"classes", o.Classes}, {"vocabulary", o.Vocabulary}, {"lora", o.LoRA}} {
		if fixed.value != 0 {
			return wrong(fixed.field, "the layers of %s are fixed; leave it out", name)
		}
	}
	return nil
}

// train applies what o says about the training.
func (o *Overrides) train(t Train) Train {
	set(&t.Batch, o.Batch)
	set(&t.GPUs, o.GPUs)
	set(&t.Precision, o.Precision)
	set(&t.Optimizer, o.Optimizer)
	set(&t.Implementation, o.Implementation)
	set(&t.Parallel, o.Parallel)
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
