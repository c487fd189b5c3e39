package hf

import (
	"strings"
	"testing"

	"carma/configs/models"
	"carma/estimator/tabletest"
)

// TestParametersByHead: each head has the library's number of parameters.
func TestParametersByHead(t *testing.T) {
	for _, row := range tabletest.Rows(t, "testdata/parameters.csv") {
		c, err := Build(row["model"], models.Overrides{Head: row["head"]})
		if err != nil {
			t.Errorf("%s: %v", row["model"], err)
			continue
		}
		want := row.Int(t, "params")
		if got := c.Params(); got != want {
			t.Errorf("%s with %s has %d parameters, want %d (%+d)", row["model"], row["head"], got, want, got-want)
		}
	}
}

// TestHeads: the head is the requested one, else the head of the class, else the default.
func TestHeads(t *testing.T) {
	bert := `{"model_type": "bert", "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "num_hidden_layers": 2, "vocab_size": 100`
	for _, c := range []struct {
		config  string
		o       models.Overrides
		last    string // of the names of the layers before the loss
		classes int64
		warning string
	}{
		{bert + `}`, models.Overrides{}, "predictions.decoder", 100, ""},
		{bert + `, "architectures": ["BertForTokenClassification"], "id2label": {"0": "a", "1": "b", "2": "c"}}`, models.Overrides{}, "classifier", 3, ""},
		{bert + `, "architectures": ["BertForMaskedLM"]}`, models.Overrides{Classes: 7}, "classifier", 7, ""},
		{bert + `, "architectures": ["BertForMaskedLM"]}`, models.Overrides{Head: "question-answering"}, "classifier", 2, ""},
		{bert + `, "architectures": ["BertModel"]}`, models.Overrides{}, "mean", 64, ""},
		{bert + `, "architectures": ["BertForNextSentencePrediction"]}`, models.Overrides{}, "predictions.decoder", 100,
			"the last layers of BertForNextSentencePrediction are not known here: those of masked-lm are counted"},
		{small[:len(small)-1] + `, "architectures": ["LlamaForSequenceClassification"]}`, models.Overrides{}, "last", 2, ""},
	} {
		got, err := Read("x", []byte(c.config), c.o)
		if err != nil {
			t.Fatal(err)
		}
		l := got.Layers[len(got.Layers)-2]
		if l.Name != c.last || l.Out[len(l.Out)-1] != c.classes {
			t.Errorf("%s %+v ends with %s %v, want %s with %d", c.config, c.o, l.Name, l.Out, c.last, c.classes)
		}
		if warned := strings.Join(got.Warnings, "|"); warned != c.warning {
			t.Errorf("%s warns %q, want %q", c.config, warned, c.warning)
		}
	}
}

func TestWrongHeads(t *testing.T) {
	for _, c := range []struct {
		model string
		o     models.Overrides
		want  string
	}{
		{"bert-base-uncased", models.Overrides{Head: "ctc"}, `head: "ctc"; a bert has `},
		{"meta-llama/Llama-3.2-1B", models.Overrides{Head: "masked-lm"}, `head: "masked-lm"; a llama has causal-lm, sequence-classification`},
		{"bert-base-uncased", models.Overrides{Target: 64}, "has no setting target-seq"},
		{"bert-base-uncased", models.Overrides{Head: "masked-lm", Classes: 3}, "has no setting classes"},
		{"facebook/dinov2-base", models.Overrides{Sequence: 64}, "has no setting sequence"},
		{"facebook/dinov2-base", models.Overrides{Image: 7}, "the image is too small"},
		{"openai/whisper-tiny", models.Overrides{Sequence: 64}, "has no setting sequence"},
		{"openai/whisper-tiny", models.Overrides{Target: 449}, "a target of 449 is longer than its 448 positions"},
		{"facebook/bart-base", models.Overrides{Sequence: 1025}, "a sequence of 1025 is longer than its 1024 positions"},
		{"FacebookAI/roberta-base", models.Overrides{Sequence: 513}, "a sequence of 513 is longer than its 512 positions"},
	} {
		_, err := Build(c.model, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %+v: %v, want %s", c.model, c.o, err, c.want)
		}
	}
}
