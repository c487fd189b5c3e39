package networks

import (
	"fmt"
	"path/filepath"

	"carma/configs/models"
	"carma/estimator/networks/named"
	"carma/estimator/networks/safetensors"
)

// Weights is the safetensors file, or their index, that ref names or that is in the
// folder ref; empty: there is none.
func Weights(ref string) string {
	if safetensors.Is(ref) && IsFile(ref) {
		return ref
	}
	return safetensors.In(ref)
}

// WeightsAlone is [Weights] if there is no config.json beside it, and ref is no model
// with a name.
func WeightsAlone(ref string) string {
	config, weights := weighed(ref)
	if IsFile(config) || named.Known(ref) && !IsFile(ref) {
		return ""
	}
	return weights
}

// weighed is the config.json of ref, and the weights beside it.
func weighed(ref string) (config, weights string) {
	weights = Weights(ref)
	if safetensors.Is(ref) {
		ref = filepath.Dir(ref)
	}
	return filepath.Join(ref, "config.json"), weights
}

// compare notes where a network and the headers of its weights differ.
func compare(c *models.Config, path string) error {
	w, err := safetensors.Read(path)
	if err != nil {
		return err
	}
	added := c.Params() - c.TrainableParams() // of the network itself, if it has adapters
	if c.TrainableParams() == c.Params() {
		added = c.Params()
	}
	if w.Parameters != added {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s has %d parameters, the network of its config.json %d (%+.2f %%)",
			models.Clip(filepath.Base(path)), w.Parameters, added, 100*(float64(added)/float64(max(w.Parameters, 1))-1)))
	}
	for _, bits := range []int{4, 8} {
		if n := w.Bits[bits]; n > 0 && !stores(c, bits) {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%d of its parameters are stored with %d bits: train adapters on them with --lora and --bits %d", n, bits, bits))
		}
	}
	c.Warnings = append(c.Warnings, w.Notes...)
	return nil
}

func stores(c *models.Config, bits int) bool {
	for i := range c.Layers {
		if c.Layers[i].Bits == bits {
			return true
		}
	}
	return false
}
