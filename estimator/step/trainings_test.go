package step_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/estimator/networks/named"
	"carma/estimator/tabletest"
)

// trainingOf returns the training of a row, built as carma estimate does from its name and
// flags.
func trainingOf(t *testing.T, row tabletest.Row) *models.Config {
	t.Helper()
	o := settingsIn(t, row)
	for _, word := range strings.Fields(row["settings"]) {
		set(t, &o, word)
	}
	c, err := named.Build(row["model"]+sizesIn(row), o)
	if err != nil {
		t.Fatal(row, err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(row, err)
	}
	withoutReserve(c)
	return c
}

// withoutReserve leaves out what cuDNN keeps of recurrent layers: fake tensors do not
// know it, so no table has it. TestReserve is about it.
func withoutReserve(c *models.Config) {
	for i := range c.Layers {
		if l := &c.Layers[i]; l.Type == models.Recurrent {
			l.Cell, l.Keeps = nil, &models.Keeps{Inputs: []int{0}, Output: true}
			if c.Train.Precision == models.AMP { // a copy of 16 bits
				l.Keeps.Inputs, l.Keeps.Bytes = nil, 2*inputOf(c, i)
			}
		}
	}
}

// inputOf returns the number of elements of a sample that layer i takes.
func inputOf(c *models.Config, i int) int64 {
	if at := c.Layers[i].Inputs; len(at) > 0 && at[0] < 0 || i == 0 {
		return c.Inputs[0].Elements()
	} else if len(at) > 0 {
		return c.Layers[at[0]].Elements()
	}
	return c.Layers[i-1].Elements()
}

// settingsIn returns the settings that have a column of their own.
func settingsIn(t *testing.T, row tabletest.Row) models.Overrides {
	checkpointing := row["checkpointing"] == "true"
	o := models.Overrides{
		Precision: models.Precision(row["precision"]), Optimizer: models.Optimizer(row["optimizer"]),
		Head: row["head"], Attention: row["attention"], Checkpointing: &checkpointing,
	}
	for name, to := range map[string]*int{
		"batch": &o.Batch, "image": &o.Image, "seq": &o.Sequence, "target": &o.Target, "lora": &o.LoRA,
	} {
		if row[name] != "" {
			*to = int(row.Int(t, name))
		}
	}
	if row["targets"] != "" {
		o.Targets = strings.Split(row["targets"], "|")
	}
	return o
}

// sizesIn returns the sizes of a network on a graph or a recurrent one, as the end of its name.
func sizesIn(row tabletest.Row) string {
	var sizes []string
	for _, name := range []string{
		"nodes", "edges", "vocabulary", "features", "input", "hidden", "layers", "directions", "projection", "classes", "heads", "dropout",
	} {
		if row[name] != "" {
			sizes = append(sizes, fmt.Sprintf("%s=%s", name, row[name]))
		}
	}
	if len(sizes) == 0 {
		return ""
	}
	return ":" + strings.Join(sizes, ",")
}

// set sets one of the words in column settings, as estimator/training/settings_steps.py
// reads them.
func set(t *testing.T, o *models.Overrides, word string) {
	t.Helper()
	name, value, _ := strings.Cut(word, "=")
	number := func() int {
		n, err := strconv.Atoi(value)
		if err != nil {
			t.Fatalf("%s: %v", word, err)
		}
		return n
	}
	switch name {
	case "accumulate":
		o.Accumulate = number()
	case "kernel": // what sdpa takes on a GPU
	case "masters":
		o.Masters = true
	case "loss":
		o.Loss = value
	case "padded":
		o.Padded = true
	case "fsdp": // the file has the batch of one rank
		o.GPUs = number()
		o.Batch *= o.GPUs
		if o.Parallel == "" {
			o.Parallel = models.FSDP
		}
	case "zero1", "zero2", "zero3": // as with fsdp
		o.GPUs, o.Parallel = number(), models.Parallel(name)
		o.Batch *= o.GPUs
	case "tp":
		o.Parallel = models.Parallel("tp:" + value)
	case "reshard":
		o.Parallel = models.FSDPGrad
	case "bits":
		o.Bits, o.Precision = number(), models.AMP
	case "offload":
		o.Offload = value
	case "adapters":
		o.DoRA = true
	case "implementation":
		o.Implementation = value
	default:
		t.Fatalf("%s: no such setting", word)
	}
}
