package step_test

import (
	"testing"

	"carma/configs/models"
	"carma/estimator/networks/hf"
	"carma/estimator/networks/zoo"
	"carma/estimator/step"
	"carma/estimator/tabletest"
)

// TestCompile checks that a training with torch.compile is estimated like one without. The
// estimate is an upper bound of the bytes that the compiler keeps between the passes, and a
// close one if the compiler keeps all.
func TestCompile(t *testing.T) {
	configs := map[string]string{
		"gpt2": `{"model_type": "gpt2", "attn_pdrop": 0, "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}`,
		"llama": `{"model_type": "llama", "vocab_size": 32000, "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 16,
			"num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": 2048}`,
	}
	for _, row := range tabletest.Rows(t, "testdata/compile.csv") {
		o := models.Overrides{Batch: int(row.Int(t, "batch")), Precision: models.Precision(row["precision"]), Compile: true}
		var c *models.Config
		var err error
		if config, ok := configs[row["model"]]; ok {
			o.Sequence = int(row.Int(t, "size"))
			c, err = hf.Read(row["model"], []byte(config), o)
		} else {
			c, err = zoo.Build(row["model"], o)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := step.Simulate(c, &step.Environment{Name: "plain"})
		if err != nil {
			t.Fatal(err)
		}
		ours, compiled := float64(got.Parts[step.Activations]), float64(row.Int(t, "peak_bytes"))
		eager := float64(row.Int(t, "eager_bytes"))
		t.Logf("%s: ours %.2f GB, kept without the partition %.2f GB, with it %.2f GB (%+.0f %%)", row["model"], ours/1e9, eager/1e9, compiled/1e9, 100*(compiled/eager-1))
		if !c.Train.Compile || ours < compiled || ours > 2*eager {
			t.Errorf("%s: ours is no bound, or far above: %+v", row["model"], c.Train)
		}
	}
}
