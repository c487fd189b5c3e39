package gpumemnet

import (
	"slices"

	"carma/configs/models"
)

const (
	// tokenSize is the length of a layer's token: present, code (2), elements of
	// the output for the whole batch, parameters.
	tokenSize = 5
	// longest is the longest sequence that the transformers' positions allow.
	longest = 1024
)

// tokens returns one token for each layer that counts, in order. It equals the function
// in features.py; a golden file compares the two.
func tokens(c models.Config) []float32 {
	b := batch(c)
	var out []float32
	for _, l := range c.Layers {
		if !slices.Contains(listed, l.Type) {
			continue
		}
		elements := product(l.Out)
		if !l.Whole {
			elements *= b
		}
		first, second := code(c.Family, l.Type)
		out = append(out, 1, first, second, float32(elements), float32(params(l)))
	}
	return out
}

// code returns the published code of a type of layer.
func code(f models.Family, layer string) (float32, float32) {
	switch {
	case f == models.MLP && layer == models.Linear:
		return 0, 1
	case f == models.MLP:
		return 1, 0
	case slices.Contains(convolutions, layer):
		return 0, 1
	case layer == models.Linear:
		return 1, 1
	case layer == models.Dropout || slices.Contains(norms, layer):
		return 0, 0
	}
	return 1, 0
}
