package evaluate

import (
	"strings"

	"carma/configs/models"
)

// job is the network of a measured job in the public tables, if their layers
// differ from the catalogue's default.
type job struct {
	name string
	with models.Overrides
	// each is set if the table contains the batch size of one GPU.
	each bool
}

// jobs maps the tables' names to jobs. A name without "/" and a data set belongs to a model
// with one data set in the catalogue.
var jobs = map[string]job{
	"mobilenet/cifar100":           {name: "mobilenet_v3_small/cifar100"},
	"UNet/voc":                     {name: "unet"},
	"DLRM/criteo-terabyte":         {name: "dlrm"},
	"Xception/imagenet":            {name: "xception", with: models.Overrides{Image: 224}}, // its first output is 111 x 111
	"gpt2_large/wikitext-2":        {name: "gpt2_large", with: models.Overrides{Sequence: 512}},
	"gpt2_xl/wikitext-2":           {name: "gpt2_xl", with: models.Overrides{Sequence: 512}}, // a sequence of 1024 does not fit into 40 GB
	"xlnet_base/wikitext-2":        {name: "xlnet_base", each: true},
	"xlnet_base_cased/wikitext-2":  {name: "xlnet_base", each: true},
	"xlnet_large/wikitext-2":       {name: "xlnet_large", each: true},
	"xlnet_large_cased/wikitext-2": {name: "xlnet_large", each: true},
}

// at returns the job's settings at a batch size of the table, on a number of GPUs.
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

// jobOf finds the job of a model by its name in the tables or in the catalogue.
func jobOf(model string) (job, bool) {
	fold := func(s string) string {
		s, _, _ = strings.Cut(strings.ToLower(s), "/")
		return strings.NewReplacer("-", "", "_", "", ".", "").Replace(s)
	}
	for name, j := range jobs { // jobs of one model have equal settings, so any job serves
		if fold(j.name) == fold(model) || strings.Contains(name, "_cased/") && fold(name) == fold(model) {
			return j, true
		}
	}
	return job{}, false
}

// Measured returns the catalogue's name for the network of a measured training, and the
// training's settings with the measured batch size.
func Measured(model, dataset string, batch, gpus int) (name string, with models.Overrides) {
	j, ok := jobOf(model)
	if !ok {
		j = job{name: model + "/" + dataset}
	}
	return j.name, j.at(batch, gpus)
}

// MeasuredWith returns the settings of a catalogued model's measured trainings that differ
// from the catalogue's defaults.
func MeasuredWith(model string) models.Overrides {
	name, _, _ := strings.Cut(model, "/")
	j, _ := jobOf(name)
	return j.with
}
