package step

import (
	"testing"

	"carma/configs/models"
)

// twoLayers returns a linear layer and another one after it, on a batch of one.
func twoLayers(precision models.Precision, second models.Layer) *models.Config {
	first := models.Layer{Type: models.Linear, Inputs: []int{-1}, Out: []int64{1 << 20}, Params: []int64{64}}
	second.Inputs, second.Out = []int{0}, []int64{1 << 20}
	return &models.Config{
		Train: models.Train{Batch: 1, Precision: precision}, Inputs: []models.Input{{Shape: []int64{64}}}, Layers: []models.Layer{first, second},
	}
}

// TestAutocastWidens checks that an operation that autocast computes in 32 bits has a 32-bit
// output, and keeps a 32-bit copy of a 16-bit input.
func TestAutocastWidens(t *testing.T) {
	for _, c := range []struct {
		precision  models.Precision
		second     models.Layer
		out, extra int64
	}{
		{models.AMP, models.Layer{Type: models.Pow}, 4 << 20, 4 << 20},
		{models.AMP, models.Layer{Type: models.GELU}, 2 << 20, 0},
		{models.BF16, models.Layer{Type: models.Pow}, 2 << 20, 0},
		{models.FP32, models.Layer{Type: models.Pow}, 4 << 20, 0},
	} {
		p, err := Prepare(twoLayers(c.precision, c.second))
		if err != nil {
			t.Fatal(err)
		}
		if l := p.layers[1]; l.out != c.out || l.extra != c.extra {
			t.Errorf("%s in %s: output of %d bytes and %d kept besides, want %d and %d", c.second.Type, c.precision, l.out, l.extra, c.out, c.extra)
		}
	}
}

// TestAdaptersTrainUnderAutocast: 32-bit adapters beside 16-bit weights.
func TestAdaptersTrainUnderAutocast(t *testing.T) {
	c := twoLayers(models.BF16, models.Layer{Type: models.LayerNorm})
	plain, err := Prepare(c)
	if err != nil {
		t.Fatal(err)
	}
	c.Layers[0].Bits = 32
	adapted, err := Prepare(c)
	if err != nil {
		t.Fatal(err)
	}
	if plain.layers[1].out != 2<<20 || adapted.layers[1].out != 4<<20 {
		t.Errorf("a norm gives %d bytes, with adapters %d; want %d and %d", plain.layers[1].out, adapted.layers[1].out, 2<<20, 4<<20)
	}
}

// TestNarrowCrossEntropy checks that a 16-bit cross-entropy computes in 16 bits, but not under
// autocast.
func TestNarrowCrossEntropy(t *testing.T) {
	for precision, want := range map[models.Precision]bool{models.BF16: true, models.AMP: false} {
		p, err := Prepare(twoLayers(precision, models.Layer{Type: models.CrossEntropy, Bits: 16}))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.layers[1].narrow; got != want {
			t.Errorf("%s: narrow %t, want %t", precision, got, want)
		}
	}
}
