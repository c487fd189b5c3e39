package booking

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/estimator"
	"carma/estimator/methods"
	"carma/estimator/networks"
)

// withWeights returns a folder with a config.json and a safetensors file of one matrix, or of
// one that bitsandbytes has packed with 4 bits.
func withWeights(t *testing.T, packed bool) string {
	t.Helper()
	header := `{"w.weight":{"dtype":"BF16","shape":[1000,1000],"data_offsets":[0,2000000]}}`
	if packed {
		header = `{"w.weight":{"dtype":"U8","shape":[1000000,1],"data_offsets":[0,1000000]},` +
			`"w.weight.quant_state.bitsandbytes__nf4":{"dtype":"U8","shape":[1000000],"data_offsets":[1000000,2000000]}}`
	}
	dir := t.TempDir()
	weights := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	for name, data := range map[string][]byte{"config.json": []byte(llama), "model.safetensors": append(weights, make([]byte, 2_000_000)...)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestWeightsTravel: for a folder with weights the daemon allocates the estimate of carma
// estimate. The estimate contains the storage format, and counts packed weights below adapters
// with their packed size.
func TestWeightsTravel(t *testing.T) {
	p, err := NewPredictor("")
	if err != nil {
		t.Fatal(err)
	}
	memory := map[string]int64{}
	for _, c := range []struct {
		packed bool
		o      models.Overrides
		stored string
	}{
		{false, models.Overrides{Batch: 2}, "stored as 1000000 BF16"},
		{false, models.Overrides{Batch: 2, LoRA: 8}, "stored as 1000000 BF16"},
		{true, models.Overrides{Batch: 2, LoRA: 8}, "stored as 2000000 4 bits (bitsandbytes)"},
		{true, models.Overrides{Batch: 2, LoRA: 8, Bits: 8}, "stored as 2000000 4 bits (bitsandbytes)"},
	} {
		dir := withWeights(t, c.packed)
		network, err := networks.Find(dir, c.o)
		if err != nil {
			t.Fatal(err)
		}
		want, err := Own().Estimate(methods.Subject{Config: network, Environment: &p.Environment().Environment})
		if err != nil {
			t.Fatal(err)
		}
		d, err := networks.Describe(dir, c.o)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Estimate(estimator.Query{Model: d.Name, Described: d.Network, Settings: d.Settings})
		if err != nil {
			t.Fatal(err)
		}
		if int64(got.Memory) != want.Upper || int64(got.Point) != want.Point || !strings.Contains(got.Detail, c.stored) {
			t.Errorf("%+v: booked %d, %s; want %d, %s", c.o, got.Memory, got.Detail, want.Upper, c.stored)
		}
		memory[fmt.Sprint(c.packed, c.o.LoRA, c.o.Bits)] = int64(got.Point)
	}
	// With 8 bits, the input of a product is kept for longer than a step, so the training may take
	// more memory than with 16 bits.
	if memory["true 8 0"] >= memory["true 8 8"] || memory["true 8 0"] >= memory["false 8 0"] {
		t.Errorf("4 bits should take less than 8, 16 or 32: %v", memory)
	}
}
