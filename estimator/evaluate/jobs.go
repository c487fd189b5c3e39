package evaluate

import (
	"strings"

	"carma/configs/models"
)

// job is what the measured jobs of the public tables run, where their own
// tables of layers show that it is not the catalogue's default.
type job struct {
	name string
	with models.Overrides
	// each: the batch size in the table is that of one GPU.
	each bool
}

// jobs by the tables' names, without "/" and data set where the catalogue has
// the model for one only.
var jobs = map[string]job{
	"mobilenet/cifar100":           {name: "mobilenet_v3_small/cifar100"},
	"UNet/voc":                     {name: "unet"},
	"DLRM/criteo-terabyte":         {name: "dlrm"},
	"Xception/imagenet":            {name: "xception", with: models.Overrides{Image: 224}}, // first output: 111 x 111
	"gpt2_large/wikitext-2":        {name: "gpt2_large", with: models.Overrides{Sequence: 512}},
	"gpt2_xl/wikitext-2":           {name: "gpt2_xl", with: models.Overrides{Sequence: 512}}, // 1024 do not fit into 40 GB
	"xlnet_base/wikitext-2":        {name: "xlnet_base", each: true},
	"xlnet_base_cased/wikitext-2":  {name: "xlnet_base", each: true},
	"xlnet_large/wikitext-2":       {name: "xlnet_large", each: true},
	"xlnet_large_cased/wikitext-2": {name: "xlnet_large", each: true},
}

// at are the settings of the job at a table's batch size, on so many GPUs.
func (j job) at(batch, gpus int) models.Overrides {
	with := j.with
	with.Batch = batch
	if with.GPUs = gpus; gpus > 1 {
		with.Parallel = models.DataParallel
	}
	if j.each {
		with.Batch *= gpus
	}
	return with
}

// jobOf finds the job of a model by the tables' or the catalogue's name.
func jobOf(model string) (job, bool) {
	fold := func(s string) string {
		s, _, _ = strings.Cut(strings.ToLower(s), "/")
		return strings.NewReplacer("-", "", "_", "", ".", "").Replace(s)
	}
	for name, j := range jobs { // those that two names lead to are alike
		if fold(j.name) == fold(model) || strings.Contains(name, "_cased/") && fold(name) == fold(model) {
			return j, true
		}
	}
	return job{}, false
}

// Measured is what a measured training of a model on a data set was: a network
// of the catalogue, with its settings. The batch size is the measurement's.
func Measured(model, dataset string, batch, gpus int) (name string, with models.Overrides) {
	j, ok := jobOf(model)
	if !ok {
		j = job{name: model + "/" + dataset}
	}
	return j.name, j.at(batch, gpus)
}

// MeasuredWith are the settings that the measured trainings of a catalogued
// model had where they are not the catalogue's defaults.
func MeasuredWith(model string) models.Overrides {
	name, _, _ := strings.Cut(model, "/")
	j, _ := jobOf(name)
	return j.with
}
