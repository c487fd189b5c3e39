package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"carma/configs/models"
)

const (
	maxLayers   = 25_000
	maxElements = 1 << 48
	maxBatch    = 1 << 30
	maxWarnings = 40
)

// decode reads a configuration that a program sent. Only decode turns untrusted text into
// a configuration.
func decode(data []byte) (*models.Config, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	c := new(models.Config)
	if err := d.Decode(c); err != nil {
		return nil, err
	}
	if err := check(c); err != nil {
		return nil, err
	}
	c.Name, c.Origin = sentence(c.Name), "probe"
	c.Warnings = c.Warnings[:min(len(c.Warnings), maxWarnings)]
	for i, w := range c.Warnings {
		c.Warnings[i] = sentence(w)
	}
	for i := range c.Layers {
		c.Layers[i].Name = sentence(c.Layers[i].Name)
	}
	return c, c.Validate()
}

func check(c *models.Config) error {
	switch {
	case c.Schema != models.Schema:
		return fmt.Errorf("schema %d", c.Schema)
	case c.Train.Batch < 1 || c.Train.Batch > maxBatch:
		return fmt.Errorf("batch size %d", c.Train.Batch)
	case len(c.Layers) == 0 || len(c.Layers) > maxLayers:
		return fmt.Errorf("%d layers", len(c.Layers))
	case len(c.Inputs) == 0 || len(c.Inputs) > 1000:
		return fmt.Errorf("%d inputs", len(c.Inputs))
	}
	for i, in := range c.Inputs {
		if _, err := elements(in.Shape); err != nil || in.Bytes < 0 || in.Bytes > 16 {
			return fmt.Errorf("input %d: shape %v of %d bytes", i, in.Shape, in.Bytes)
		}
	}
	types := models.Types()
	for i, l := range c.Layers {
		if err := checkLayer(l, i, len(c.Inputs), types); err != nil {
			return fmt.Errorf("layer %d: %w", i, err)
		}
	}
	return nil
}

func checkLayer(l models.Layer, at, inputs int, types []string) error {
	if !slices.Contains(types, l.Type) {
		return fmt.Errorf("unknown type %q", l.Type)
	}
	for _, in := range l.Inputs {
		if in >= at || in < -inputs {
			return fmt.Errorf("takes the output of %d", in)
		}
	}
	for _, shape := range [][]int64{l.Out, l.Kernel} {
		if _, err := elements(shape); err != nil {
			return err
		}
	}
	for _, n := range append([]int64{l.Stride, l.Groups, l.Heads, int64(l.Block)}, l.Params...) {
		if n < 0 || n > maxElements {
			return fmt.Errorf("%d is out of range", n)
		}
	}
	if k := l.Keeps; k != nil {
		if k.Bytes < 0 || k.Bytes > maxElements || k.Whole < 0 || k.Whole > maxElements {
			return errors.New("keeps less than nothing, or more than there is")
		}
		for _, in := range k.Inputs {
			if in < 0 || in >= len(l.Inputs) {
				return fmt.Errorf("keeps input %d of %d", in, len(l.Inputs))
			}
		}
	}
	return nil
}

// elements returns the product of a shape's dimensions.
func elements(shape []int64) (int64, error) {
	n := int64(1)
	for _, d := range shape {
		if d < 1 || d > maxElements/n {
			return 0, fmt.Errorf("shape %v", shape)
		}
		n *= d
	}
	return n, nil
}
