package arguments

import (
	"strings"

	"carma/configs/models"
)

// optimizers maps names of optimizers in transformers and DeepSpeed to carma's names and
// the implementation of the step. For bitsandbytes, the names are carma's own.
var optimizers = map[string][2]string{
	"adamw_torch": {"adamw", ""}, "adamw": {"adamw", ""}, "adam": {"adam", ""}, "adamw_hf": {"adamw", "for-loop"},
	"adamw_torch_fused": {"adamw", "fused"}, "adamw_apex_fused": {"adamw", "fused"}, "fusedadam": {"adamw", "fused"}, "adamw_bnb_32bit": {"adamw", "fused"},
	"adamw_bnb_8bit": {"adamw8bit", ""}, "adamw_8bit": {"adamw8bit", ""}, "adamw8bit": {"adamw8bit", ""}, "adam8bit": {"adam8bit", ""},
	"paged_adamw_8bit": {"paged-adamw8bit", ""}, "paged_adamw_32bit": {"paged-adamw", ""}, "paged_adamw": {"paged-adamw", ""},
	"lion": {"lion", ""}, "lion_32bit": {"lion", ""}, "paged_lion_32bit": {"lion", ""}, "lion_8bit": {"lion8bit", ""}, "paged_lion_8bit": {"lion8bit", ""},
	"adafactor": {"adafactor", ""}, "adagrad": {"adagrad", ""}, "sgd": {"sgd", ""}, "rmsprop": {"rmsprop", ""}, "rmsprop_bnb_32bit": {"rmsprop", "fused"},
	"muon": {"muon", ""},
}

// optimizer reads the name of an optimizer. An unknown name becomes a note.
func (r *reader) optimizer(name, from string) {
	name = strings.ToLower(clean(name))
	known, ok := optimizers[name]
	if !ok {
		if name != "" && name != "auto" {
			r.note("%s %s is not known here; the optimizer is not read", from, models.Clip(name))
		}
		return
	}
	r.set("optimizer", known[0], from)
	r.set("implementation", known[1], from)
}
