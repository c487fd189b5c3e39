package booking

import (
	"fmt"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/estimator"
	"carma/estimator/methods"
	"carma/estimator/networks/described"
	"carma/estimator/networks/hf"
)

const llama = `{"model_type":"llama","hidden_size":2048,"intermediate_size":5632,"num_hidden_layers":22,"num_attention_heads":32,"num_key_value_heads":4,"vocab_size":32000,"max_position_embeddings":4096}`

func ofLlama(t *testing.T) []byte {
	t.Helper()
	d, err := described.OfConfig([]byte(llama), nil, models.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDescribed checks that carma allocates the estimate of the described network with these
// settings, and that the text names the network.
func TestDescribed(t *testing.T) {
	p := testPredictor(t)
	o := models.Overrides{Sequence: 1024, LoRA: 16, Targets: []string{"all-linear"}, Precision: models.BF16}
	q := estimator.Query{Model: "config.json", Described: ofLlama(t), Settings: o, Batch: 4, GPUs: 1}
	e := predicted(t, p, q)
	o.Batch = 4
	c, err := hf.Read("config.json", []byte(llama), o)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Own().Estimate(methods.Subject{Config: c, Environment: &p.Environment().Environment, Capacity: p.Environment().Capacity})
	if err != nil || int64(e.Point) != a.Point || int64(e.Memory) != a.Upper || e.Method != "carma" {
		t.Errorf("%+v, the estimator says %+v, %v", e, a, err)
	}
	for _, want := range []string{"config.json (llama, 1.11 G parameters, 12.6 M of them trained), LoRA 16 on all-linear, bf16, seq 1024 at batch size 4 by estimator carma (a100-2025-09): "} {
		if !strings.HasPrefix(e.Detail, want) {
			t.Errorf("%s\nwant %s", e.Detail, want)
		}
	}
	if e.Plain.Model != fmt.Sprintf("config.json, %d parameters", c.Params()) {
		t.Errorf("its runs measure %q, as those of other files", e.Plain.Model)
	}
	if x := p.Expect(q); len(x.Loads) > 0 {
		t.Errorf("a file has the profile of %+v", x)
	}
}

// TestSettingsAreEstimated checks that a measurement is not used for a training with other
// settings, and that sharded weights take less memory of each GPU.
func TestSettingsAreEstimated(t *testing.T) {
	p := testPredictor(t)
	q := estimator.Query{Model: "resnet50", Batch: 64, GPUs: 1}
	if e := predicted(t, p, q); e.Method != estimator.Measured {
		t.Fatalf("%+v", e)
	}
	full := q
	full.Settings.Precision = models.FP32
	amp := q
	amp.Settings.Precision = models.AMP
	if f, a := predicted(t, p, full), predicted(t, p, amp); f.Method != "carma" || a.Point >= f.Point || !strings.Contains(a.Detail, "), amp at batch size 64") {
		t.Errorf("fp32 %+v\namp %+v", f, a)
	}
	one := estimator.Query{Model: "config.json", Described: ofLlama(t), Settings: models.Overrides{Sequence: 256, Precision: models.AMP}, Batch: 4, GPUs: 4}
	sharded := one
	sharded.Settings.Parallel = models.FSDP
	if d, s := predicted(t, p, one), predicted(t, p, sharded); s.Point >= d.Point/2 || !strings.Contains(s.Detail, "fsdp:full, on 4 GPUs at batch size 4") {
		t.Errorf("ddp %+v\nfsdp %+v", d, s)
	}
}

// TestReadFromCommand: the batch size of all GPUs together counts in the estimate, and
// is scaled when runs at other batch sizes correct it.
func TestReadFromCommand(t *testing.T) {
	p := testPredictor(t)
	q := estimator.Query{Model: "config.json", Described: ofLlama(t), Settings: models.Overrides{Sequence: 256, Precision: models.AMP, Batch: 8}, Batch: 4, GPUs: 2, Read: "batch size 4 per GPU, amp"}
	e := predicted(t, p, q)
	if !strings.Contains(e.Detail, "at batch size 8") || !strings.HasSuffix(e.Detail, "; read from the command: batch size 4 per GPU, amp") {
		t.Error(e.Detail)
	}
	half := q
	half.Settings.Batch, half.Batch = 4, 2
	there := predicted(t, p, half)
	q.Runs = []estimator.Run{{Batch: 2, Peak: there.Point.Scale(1.2)}}
	if ratio := predicted(t, p, q).Point.GiB() / e.Point.GiB(); ratio < 1.199 || ratio > 1.201 {
		t.Errorf("corrected by %.4f, want 1.2", ratio)
	}
}

func TestDescribedRefused(t *testing.T) {
	p := testPredictor(t)
	for _, c := range []struct {
		q    estimator.Query
		want string
	}{
		{estimator.Query{Model: "x", Described: []byte(`{"model_type":"lama"}`)}, `"lama" is not known here; the nearest: llama`},
		{estimator.Query{Model: "x", Described: ofLlama(t), Settings: models.Overrides{LoRA: 4, Targets: []string{"querry"}}}, "no layer querry"},
		{estimator.Query{Model: "x", Described: ofLlama(t), Settings: models.Overrides{Sequence: 1 << 40}}, "want 1 to 1048576"},
	} {
		if e, err := p.Estimate(c.q); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v, %v", e, err)
		}
	}
}
