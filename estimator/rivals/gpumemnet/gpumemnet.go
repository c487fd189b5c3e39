// Package gpumemnet predicts the class of a training's peak GPU memory with models
// learned from the GPUMemNet data, for MLPs and for plain CNNs. There are two designs: an
// ensemble of MLPs over sums of the layers, and an ensemble of transformers over the
// layers themselves. estimator/training trains the models; README.md is their model card.
// The answers hold for the data's conditions: one A100 40 GB, FP32, Adam. A result lists
// the conditions that a network does not meet.
package gpumemnet

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"carma/internal/units"

	"carma/configs/models"
	"carma/estimator/onnx"
)

// ErrNoData means that no model was trained on this family of networks.
var ErrNoData = errors.New("no data for this family")

// ErrTooLong means that the network has more layers than the transformers accept.
var ErrTooLong = errors.New("too many layers")

// Design is one of the published designs.
type Design string

// The designs. Better, the zero value, is the family's design with the more
// accurate held-out folds.
const (
	Better      Design = ""
	MLPs        Design = "mlp"
	Transformer Design = "transformer"
)

// Result is the class of a training's memory.
type Result struct {
	// Design is the design that answered.
	Design Design
	// Class is the likeliest class, from 0. The last class has no upper edge.
	Class int
	// Upper is the class's upper edge, or 0 if it has none.
	Upper units.Bytes
	// Probabilities contains the probabilities of the classes; their sum is 1.
	Probabilities []float32
	// Outside names features outside the range of the training data, and settings missing in
	// the data. If there are any, the answer is a guess.
	Outside []string
}

//go:embed *.onnx *.json
var files embed.FS

type network struct {
	session *onnx.Session
	card    card
}

// card is the metadata file that the training wrote for a model.
type card struct {
	// Accuracy is the mean accuracy on the held-out rows of the folds.
	Accuracy float64   `json:"accuracy"`
	Edges    []int64   `json:"edges_mib"`
	Features []string  `json:"features"`
	Least    []float32 `json:"least"`
	Most     []float32 `json:"most"`
}

// load reads a model. Its first output must be the probabilities.
func load(name string, inputs, outputs []string) (n network, err error) {
	model, err := files.ReadFile(name + ".onnx")
	if err != nil {
		return n, err
	}
	text, err := files.ReadFile(name + ".json")
	if err != nil {
		return n, err
	}
	if err := json.Unmarshal(text, &n.card); err != nil {
		return n, fmt.Errorf("card of %s: %w", name, err)
	}
	if k := n.card; len(k.Features) != features || len(k.Least) != features || len(k.Most) != features {
		return n, fmt.Errorf("card of %s: another number of features", name)
	}
	n.session = onnx.New("gpumemnet "+name, model, inputs, outputs)
	return n, nil
}

// networks returns the models by family and design. It loads all models at the first call.
var networks = sync.OnceValues(func() (map[models.Family]map[Design]network, error) {
	all := map[models.Family]map[Design]network{}
	for _, f := range []models.Family{models.MLP, models.Conv} {
		mlps, err := load(string(f), []string{"features"}, []string{"probabilities"})
		if err != nil {
			return nil, err
		}
		transformers, err := load(string(f)+"-transformer", []string{"features", "tokens"}, []string{"probabilities", "place", "width"})
		if err != nil {
			return nil, err
		}
		all[f] = map[Design]network{MLPs: mlps, Transformer: transformers}
	}
	return all, nil
})

// better returns a family's design with the higher accuracy.
func better(of map[Design]network) Design {
	if of[Transformer].card.Accuracy > of[MLPs].card.Accuracy {
		return Transformer
	}
	return MLPs
}

// Estimate answers for a valid configuration. It is safe for concurrent use. It
// fails with [ErrNoData], [ErrTooLong] or [onnx.ErrUnavailable], or if the build
// is damaged.
func Estimate(c models.Config, d Design) (Result, error) {
	all, err := networks()
	if err != nil {
		return Result{}, fmt.Errorf("gpumemnet: %w", err)
	}
	designs, ok := all[c.Family]
	if !ok {
		return Result{}, fmt.Errorf("gpumemnet: %s: %w", c.Family, ErrNoData)
	}
	if d == Better {
		d = better(designs)
	}
	n, ok := designs[d]
	if !ok {
		return Result{}, fmt.Errorf("gpumemnet: no design %q", d)
	}
	x := summary(c)
	in, err := inputs(c, d, x)
	if err != nil {
		return Result{}, fmt.Errorf("gpumemnet: %w", err)
	}
	out, err := n.session.Run(in...)
	if err != nil {
		return Result{}, fmt.Errorf("gpumemnet: %w", err)
	}
	r := Result{Design: d, Probabilities: out[0].Data, Outside: n.card.outside(c, x)}
	edges := n.card.Edges
	if len(r.Probabilities) != len(edges)+1 {
		return Result{}, fmt.Errorf("gpumemnet: model of %s gives %d classes, not %d", c.Family, len(r.Probabilities), len(edges)+1)
	}
	for i, p := range r.Probabilities {
		if p > r.Probabilities[r.Class] {
			r.Class = i
		}
	}
	if r.Class < len(edges) {
		r.Upper = units.Bytes(edges[r.Class]) * units.MiB
	}
	return r, nil
}

// inputs returns the inputs of a design's model.
func inputs(c models.Config, d Design, x []float32) ([]onnx.Tensor, error) {
	in := []onnx.Tensor{onnx.Rows(1, x)}
	if d != Transformer {
		return in, nil
	}
	t := tokens(c)
	n := len(t) / tokenSize
	if n > longest {
		return nil, fmt.Errorf("%w: %d, the transformers take up to %d", ErrTooLong, n, longest)
	}
	if n == 0 {
		return nil, fmt.Errorf("%w: no layer that counts", ErrNoData)
	}
	return append(in, onnx.Tensor{Shape: []int64{1, int64(n), tokenSize}, Data: t}), nil
}

func (k card) outside(c models.Config, x []float32) []string {
	var out []string
	for i, name := range k.Features {
		if x[i] < k.Least[i] || x[i] > k.Most[i] {
			out = append(out, fmt.Sprintf("%s %.4g, learned from %.4g to %.4g", name, x[i], k.Least[i], k.Most[i]))
		}
	}
	if o := c.Train.Optimizer; o != "" && o != models.Adam {
		out = append(out, fmt.Sprintf("optimizer %s, learned with adam", o))
	}
	if p := c.Train.Precision; p != "" && p != models.FP32 {
		out = append(out, fmt.Sprintf("precision %s, learned with fp32", p))
	}
	for _, l := range c.Layers {
		if l.Type == models.Add || l.Type == models.Concat || l.Type == models.Attention || l.Type == models.MaxPool {
			return append(out, "layer "+l.Type+", which no network learned from has")
		}
	}
	return out
}
