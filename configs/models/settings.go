package models

import (
	"slices"
	"strings"

	"carma/internal/suggest"
)

// A Setting is a setting of a training that can be given as one text. It is a flag of
// carma run and carma estimate, a key of task files and of x-carma, and a key of the
// API's train. To add one, add a field to [Overrides] and a row to the table below.
type Setting struct {
	// Name is its name where a container image is named too. Short is its name in carma
	// estimate and carma models, or empty if it is the same.
	Name, Short string
	Help        string
	// Value is the placeholder of its value in help, or empty for an on/off setting.
	Value string
	// Words lists the allowed values, or is nil if any value is allowed.
	Words []string
	// Layers is set if the setting changes layers, so that a network with fixed layers
	// refuses it.
	Layers bool

	set  func(o *Overrides, text string) error
	text func(o *Overrides) string // the input of set, or empty if not given
	told func(o *Overrides) string // for people, or empty if not given
}

// settings is the table, in the order of help and messages.
var settings = []Setting{
	{
		Name: "lora", Value: "rank", Layers: true, Help: "train adapters of this rank, the rest is frozen: 16, or r=16,targets=all-linear",
		set: setLoRA, text: func(o *Overrides) string { return count(o.LoRA) }, told: toldLoRA,
	},
	{
		Name: "lora-targets", Value: "name", Layers: true, Help: "layers that get adapters, by name: q_proj,v_proj, or all-linear (default: queries and values)",
		set: setTargets, text: func(o *Overrides) string { return strings.Join(o.Targets, ",") },
		told: func(o *Overrides) string {
			if o.LoRA > 0 || len(o.Targets) == 0 {
				return "" // shown together with the rank
			}
			return "adapters on " + strings.Join(o.Targets, ", ")
		},
	},
	{
		Name: "bits", Value: "bits", Layers: true, Help: "bits of each number of the frozen matrices: 4 (QLoRA) or 8",
		set: setBits, text: func(o *Overrides) string { return count(o.Bits) }, told: after("%s-bit weights", func(o *Overrides) int { return o.Bits }),
	},
	word("precision", "", "of weights and activations", Precisions, nil, func(o *Overrides) *Precision { return &o.Precision }),
	size("seq", "", "tokens of one sample", "seq %s", func(o *Overrides) *int { return &o.Sequence }),
	size("target-seq", "", "tokens of one sample that a decoder beside an encoder writes", "target %s", func(o *Overrides) *int { return &o.Target }),
	size("image-size", "image", "side of a square image in pixels", "images of %s pixels", func(o *Overrides) *int { return &o.Image }),
	size("classes", "", "classes of the output", "%s classes", func(o *Overrides) *int { return &o.Classes }),
	{
		Name: "head", Value: "name", Layers: true, Help: "last layers and loss of a model of the hub: masked-lm, sequence-classification, ctc ... (default: as in its configuration)",
		set: func(o *Overrides, text string) error { o.Head = text; return nil }, text: func(o *Overrides) string { return o.Head },
		told: func(o *Overrides) string {
			if o.Head == "" {
				return ""
			}
			return "head " + o.Head
		},
	},
	size("vocabulary", "", "tokens of the vocabulary", "vocabulary %s", func(o *Overrides) *int { return &o.Vocabulary }),
	word("optimizer", "", "of the training", Optimizers, map[string]string{"adamw-8bit": "adamw8bit"}, func(o *Overrides) *Optimizer { return &o.Optimizer }),
	number("accumulate", "", "backward passes of such a batch before the optimizer's step", "gradients of %s passes added up", func(o *Overrides) *int { return &o.Accumulate }),
	word("implementation", "", "of the optimizer's step", Implementations, nil, func(o *Overrides) *string { return &o.Implementation }),
	{
		Name: "sharding", Short: "parallel", Value: "word", Words: Parallels(), Help: "how the training is spread over its GPUs: " + strings.Join(Parallels(), ", ") + ", tp:N",
		set: setParallel, text: func(o *Overrides) string { return string(o.Parallel) }, told: func(o *Overrides) string { return string(o.Parallel) },
	},
	number("sequence-parallel", "", "GPUs that the tokens of each sample are spread over (Ulysses, ring attention)", "tokens of a sample over %s GPUs", func(o *Overrides) *int { return &o.SequenceParallel }),
	word("attention", "", "how attention is computed", Attentions, nil, func(o *Overrides) *string { return &o.Attention }),
	word("loss", "", "the cross-entropy of all tokens at once, or in chunks", Losses, nil, func(o *Overrides) *string { return &o.Loss }),
	onOff("padded", "samples have different lengths: the attention gets a mask", false, func(o *Overrides) *bool { return &o.Padded }),
	onOff("compile", "with torch.compile: counted as without, which is more", false, func(o *Overrides) *bool { return &o.Compile }),
	onOff("masters", "the optimizer updates 32-bit copies of 16-bit weights", false, func(o *Overrides) *bool { return &o.Masters }),
	onOff("dora", "with adapters: their weights are decomposed (DoRA)", true, func(o *Overrides) *bool { return &o.DoRA }),
	{
		Name: "offload", Value: "names", Help: "what goes to the host's memory, with commas: " + strings.Join(Offloadable(), ", "),
		set: setOffload, text: func(o *Overrides) string { return o.Offload },
		told: func(o *Overrides) string {
			if o.Offload == "" {
				return ""
			}
			return o.Offload + " offloaded"
		},
	},
	{
		Name: "checkpointing", Help: "recompute each block's activations in the backward pass",
		set: setCheckpointing, text: textOf(func(o *Overrides) *bool { return o.Checkpointing }),
		told: func(o *Overrides) string {
			switch {
			case o.Checkpointing == nil:
				return ""
			case *o.Checkpointing:
				return "checkpointing"
			}
			return "no checkpointing"
		},
	},
}

// Settings returns the settings of trainings, in the order of help and messages.
func Settings() []Setting { return slices.Clone(settings) }

// SettingNamed finds a setting by its name, its short name or its key.
func SettingNamed(name string) (Setting, bool) {
	i := slices.IndexFunc(settings, func(s Setting) bool { return name == s.Name || name == s.Short && name != "" || name == s.Key() })
	if i < 0 {
		return Setting{}, false
	}
	return settings[i], true
}

// Key returns the setting's name in JSON.
func (s *Setting) Key() string { return strings.ReplaceAll(s.Name, "-", "_") }

// Set parses a text. The error quotes the text and contains the nearest possible value,
// but not the setting's name.
func (s *Setting) Set(o *Overrides, text string) error { return s.set(o, text) }

// Text returns the setting in the form that [Setting.Set] reads, or empty if it is not
// given.
func (s *Setting) Text(o *Overrides) string { return s.text(o) }

// Texts returns the given settings by key, or nil if there are none.
func Texts(o *Overrides) map[string]string {
	var all map[string]string
	for i := range settings {
		if text := settings[i].text(o); text != "" {
			if all == nil {
				all = map[string]string{}
			}
			all[settings[i].Key()] = text
		}
	}
	return all
}

// FromTexts parses settings by key. An error is about the first wrong setting in the
// order of the table.
func FromTexts(texts map[string]string) (Overrides, error) {
	var o Overrides
	known := 0
	for i := range settings {
		text, there := texts[settings[i].Key()]
		if !there {
			continue
		}
		known++
		if err := settings[i].set(&o, text); err != nil {
			return o, wrong(settings[i].Name, "%v", err)
		}
	}
	if known == len(texts) {
		return o, nil
	}
	var keys []string
	for i := range settings {
		keys = append(keys, settings[i].Key())
	}
	var unknown []string
	for key := range texts {
		if !slices.Contains(keys, key) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	return o, wrong("train", "unknown setting %s; nearest: %s", Short(unknown[0]), suggest.Names(unknown[0], keys, 1)[0])
}

// WithoutLayers returns the settings that change no layers.
func (o *Overrides) WithoutLayers() Overrides {
	rest := Overrides{Batch: o.Batch, GPUs: o.GPUs}
	for i := range settings {
		if s := &settings[i]; !s.Layers && s.text(o) != "" {
			_ = s.set(&rest, s.text(o)) // it has been parsed before
		}
	}
	return rest
}

// Told formats the given settings for people: LoRA 16 on all-linear, bf16, seq 2048. It
// is empty if none is given.
func Told(o *Overrides) string {
	var all []string
	for i := range settings {
		if said := settings[i].told(o); said != "" {
			all = append(all, said)
		}
	}
	return strings.Join(all, ", ")
}
