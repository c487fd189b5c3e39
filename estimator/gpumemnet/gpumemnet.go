// Package gpumemnet predicts the class of a training's peak GPU memory with
// models learned on the GPUMemNet data: one for MLPs, one for plain CNNs. The
// models are estimator/training's; README.md is their card. It answers with
// what the data has, one A100 40 GB, FP32 and Adam, and says what lies outside.
package gpumemnet

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"carma/configs/models"
	"carma/estimator/onnx"
	"carma/mapper"
)

// ErrNoData says that the models know nothing of such networks.
var ErrNoData = errors.New("no data for this family")

// Result is the class of a training's memory.
type Result struct {
	// Class is the likeliest, from 0; the last has no upper edge.
	Class int
	// Upper is the class's upper edge; 0 where it has none.
	Upper mapper.Bytes
	// Probabilities of the classes; they sum to 1.
	Probabilities []float32
	// Outside names features beyond the training data and settings it does
	// not have; with any, the answer is a guess.
	Outside []string
}

//go:embed mlp.onnx
var mlpModel []byte

//go:embed mlp.json
var mlpCard []byte

//go:embed cnn.onnx
var cnnModel []byte

//go:embed cnn.json
var cnnCard []byte

type network struct {
	session *onnx.Session
	card    func() (card, error)
}

// card is what the training wrote beside a model.
type card struct {
	Edges    []int64   `json:"edges_mib"`
	Features []string  `json:"features"`
	Least    []float32 `json:"least"`
	Most     []float32 `json:"most"`
}

func load(name string, model, text []byte) network {
	return network{
		session: onnx.New("gpumemnet "+name, model, []string{"features"}, []string{"probabilities"}),
		card: sync.OnceValues(func() (c card, err error) {
			err = json.Unmarshal(text, &c)
			if err == nil && (len(c.Features) != features || len(c.Least) != features || len(c.Most) != features) {
				err = errors.New("another number of features")
			}
			return c, err
		}),
	}
}

var networks = map[models.Family]network{
	models.MLP:  load("mlp", mlpModel, mlpCard),
	models.Conv: load("cnn", cnnModel, cnnCard),
}

// Estimate answers for a valid configuration. It is safe for concurrent use.
// Errors: [ErrNoData], [onnx.ErrUnavailable], and those of a damaged build.
func Estimate(c models.Config) (Result, error) {
	n, ok := networks[c.Family]
	if !ok {
		return Result{}, fmt.Errorf("gpumemnet: %s: %w", c.Family, ErrNoData)
	}
	card, err := n.card()
	if err != nil {
		return Result{}, fmt.Errorf("gpumemnet: card of %s: %w", c.Family, err)
	}
	x := summary(c)
	out, err := n.session.Run(onnx.Rows(1, x))
	if err != nil {
		return Result{}, fmt.Errorf("gpumemnet: %w", err)
	}
	r := Result{Probabilities: out[0].Data, Outside: card.outside(c, x)}
	if len(r.Probabilities) != len(card.Edges)+1 {
		return Result{}, fmt.Errorf("gpumemnet: model of %s gives %d classes, not %d", c.Family, len(r.Probabilities), len(card.Edges)+1)
	}
	for i, p := range r.Probabilities {
		if p > r.Probabilities[r.Class] {
			r.Class = i
		}
	}
	if r.Class < len(card.Edges) {
		r.Upper = mapper.Bytes(card.Edges[r.Class]) * mapper.MiB
	}
	return r, nil
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
