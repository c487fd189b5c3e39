package described

import (
	"encoding/json"
	"fmt"
	"strings"

	"carma/configs/models"
)

// Weights summarizes the headers of a model's safetensors files: the number of parameters
// of each stored type. It is stored in the object of a config.json under [weightsKey].
type Weights struct {
	File  string   `json:"file"` // name of the file without its folder
	Types []Stored `json:"types"`
}

// Stored is the number of parameters of one type.
type Stored struct {
	Type       string `json:"type"` // BF16, 4 bits (bitsandbytes), ...
	Bits       int    `json:"bits"`
	Parameters int64  `json:"parameters"`
}

// weightsKey is the name of the field for the weights. No config.json of the library uses
// this name.
const weightsKey = "safetensors"

// mostTypes is the largest number of number types in a description. The format has some
// twenty types, plus quantized types.
const mostTypes = 64

// Parameters returns the number of parameters of all types.
func (w *Weights) Parameters() (sum int64) {
	for _, t := range w.Types {
		sum += t.Parameters
	}
	return sum
}

// String names the types, the most frequent first.
func (w *Weights) String() string {
	var parts []string
	for _, t := range w.Types {
		parts = append(parts, fmt.Sprintf("%d %s", t.Parameters, t.Type))
	}
	return strings.Join(parts, ", ")
}

// check refuses values that no file can have, because descriptions are untrusted input.
func (w *Weights) check() error {
	wrong := func(format string, args ...any) error {
		return &models.Error{Field: weightsKey, What: fmt.Sprintf(format, args...)}
	}
	if len(w.Types) == 0 || len(w.Types) > mostTypes {
		return wrong("%d types; give 1 to %d", len(w.Types), mostTypes)
	}
	var sum int64
	for i, t := range w.Types {
		if t.Bits < 1 || t.Bits > 64 {
			return wrong("types[%d]: %d bits; give 1 to 64", i, t.Bits)
		}
		if t.Parameters < 1 || t.Parameters > models.MaxElements-sum {
			return wrong("types[%d]: %d parameters; give 1 to %d in all", i, t.Parameters, models.MaxElements)
		}
		sum += t.Parameters
		w.Types[i].Type = models.Clip(t.Type)
	}
	w.File = models.Clip(w.File)
	return nil
}

// Build builds a network with o, and compares it with its weights. If adapters are
// trained and o does not set the precision of the frozen parameters, they keep the
// precision of the weight files. w is nil if there are no weights.
func (w *Weights) Build(o models.Overrides, build func(models.Overrides) (*models.Config, error)) (*models.Config, error) {
	if w == nil {
		return build(o)
	}
	packed, bits := w.packed()
	settled := packed > 0 && o.LoRA > 0 && o.Bits == 0
	if settled {
		o.Bits = bits
	}
	c, err := build(o)
	if err != nil {
		return nil, err
	}
	if settled {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s stores %d parameters with %d bits: they are counted so", w.File, packed, bits))
	}
	w.compare(c)
	return c, nil
}

// compare adds warnings about differences between a network and its weights.
func (w *Weights) compare(c *models.Config) {
	itself := c.Params()
	if trained := c.TrainableParams(); trained < itself {
		itself -= trained // without the adapters
	}
	if n := w.Parameters(); n != itself {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s has %d parameters, the network of its config.json %d (%+.2f %%)",
			w.File, n, itself, 100*(float64(itself)/float64(n)-1)))
	}
	for _, bits := range []int{4, 8} {
		var n int64
		for _, t := range w.Types {
			if t.Bits == bits {
				n += t.Parameters
			}
		}
		if n > 0 && !stores(c, bits) {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%d of its parameters are stored with %d bits: train adapters on them with --lora and --bits %d", n, bits, bits))
		}
	}
}

// packed returns the number of parameters that stay packed when the transformers library
// loads them for adapters, and the bits of most of these. Adapters cannot be trained on
// MXFP4, and on FP8 only with compute capability 8.9 and newer; otherwise the library
// converts to 16 bits (transformers 5.23.0, quantizers/quantizer_mxfp4.py and
// quantizer_finegrained_fp8.py).
func (w *Weights) packed() (parameters int64, bits int) {
	var most int64
	for _, t := range w.Types {
		if t.Bits != 4 && t.Bits != 8 || !trainedOn(t.Type) {
			continue
		}
		if parameters += t.Parameters; t.Parameters > most {
			most, bits = t.Parameters, t.Bits
		}
	}
	return parameters, bits
}

// trainedOn reports whether parameters of a quantized type keep that type below adapters.
func trainedOn(kind string) bool {
	for _, form := range []string{"bitsandbytes", "GPTQ", "AWQ", "compressed-tensors"} {
		if strings.HasSuffix(kind, " bits ("+form+")") {
			return true
		}
	}
	return false
}

// stores reports whether a layer's numbers have this number of bits.
func stores(c *models.Config, bits int) bool {
	for i := range c.Layers {
		if c.Layers[i].Bits == bits {
			return true
		}
	}
	return false
}

// with adds the weights to the object of a config.json. If w is nil, with removes the
// weights from the object.
func (w *Weights) with(object []byte) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(object, &all); err != nil {
		return nil, &models.Error{What: "not JSON: " + err.Error()}
	}
	if _, there := all[weightsKey]; w == nil && !there {
		return object, nil
	}
	delete(all, weightsKey)
	if w != nil {
		text, err := json.Marshal(w)
		if err != nil {
			return nil, err
		}
		all[weightsKey] = text
	}
	return json.Marshal(all)
}

// weightsIn returns the weights in the object of a config.json, or nil if it has none.
func weightsIn(object []byte) (*Weights, error) {
	var found struct {
		Weights *Weights `json:"safetensors"`
	}
	if err := json.Unmarshal(object, &found); err != nil {
		return nil, &models.Error{Field: weightsKey, What: "not as carma run makes it: " + err.Error()}
	}
	if found.Weights == nil {
		return nil, nil
	}
	return found.Weights, found.Weights.check()
}
