package models_test

import (
	"testing"

	"carma/configs/models"
)

// TestFamilyOf checks that a network with many convolutions and a little attention does not
// count as a transformer.
func TestFamilyOf(t *testing.T) {
	for _, c := range []struct {
		want   models.Family
		counts map[string]int
	}{
		{models.Conv, map[string]int{models.Convolution: 87, models.BatchNorm: 81, models.Attention: 1}},                           // YOLO11
		{models.Transformer, map[string]int{models.Convolution: 1, models.LayerNorm: 25, models.Attention: 12, models.Linear: 49}}, // ViT
		{models.Transformer, map[string]int{models.Convolution: 8, models.BatchNorm: 1, models.LayerNorm: 25, models.Attention: 12}},
		{models.Conv, map[string]int{models.Convolution: 53, models.BatchNorm: 53, models.Linear: 1}},
		{models.Other, map[string]int{models.Recurrent: 2, models.Embedding: 1, models.Linear: 1}},
	} {
		var layers []models.Layer
		for kind, n := range c.counts {
			for range n {
				layers = append(layers, models.Layer{Type: kind})
			}
		}
		if got := models.FamilyOf(layers); got != c.want {
			t.Errorf("%v is %s, want %s", c.counts, got, c.want)
		}
	}
}
