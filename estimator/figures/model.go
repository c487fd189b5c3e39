package figures

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"

	"carma/configs/models"
	"carma/estimator/onnx"
	"carma/estimator/step"
)

//go:embed figures.onnx
var trees []byte

//go:embed card.json
var cardText []byte

// card is the file that the training wrote with the trees.
type card struct {
	Features []string `json:"features"`
	Groups   []group  `json:"groups"`
}

// group is a family with a set of known optional figures. Its bounds were calibrated on
// rows outside the trees' training data.
type group struct {
	Family models.Family `json:"family"`
	Input  bool          `json:"input"`
	Layers bool          `json:"layers"`
	// Least and Most are the range of each feature in the training data.
	Least []float32 `json:"least"`
	Most  []float32 `json:"most"`
	// Bounds are on the logarithm of measured memory over the upper trees' answer.
	Bounds []struct {
		Confidence float64 `json:"confidence"`
		Log        float64 `json:"log"`
	} `json:"bounds"`
}

var readCard = sync.OnceValues(func() (card, error) {
	var k card
	if err := json.Unmarshal(cardText, &k); err != nil {
		return k, fmt.Errorf("card of the figures' model: %w", err)
	}
	if !slices.Equal(k.Features, names) {
		return k, fmt.Errorf("card of the figures' model: features %v, want %v", k.Features, names)
	}
	return k, nil
})

// Result is an estimate per GPU, in bytes.
type Result struct {
	Point, Upper int64
	// Context and Weights are the computed parts of Point. Weights includes
	// gradients and the optimizer's states.
	Context, Weights int64
	// Warnings contains a sentence each.
	Warnings []string
}

// Model is the learned model, loaded at its first use. It is safe for concurrent use.
type Model struct{ session *onnx.Session }

// NewModel returns the model that ships with carma.
func NewModel() *Model {
	return &Model{onnx.New("figures", trees, []string{"features"}, []string{"middle", "upper"})}
}

// Estimate estimates a training. confidence is the probability that the bound holds,
// between 0 and 1. It fails with the error of [Figures.Check], and with
// [onnx.ErrUnavailable].
func (m *Model) Estimate(f Figures, env *step.Environment, confidence float64) (Result, error) {
	if err := f.Check(); err != nil {
		return Result{}, err
	}
	k, err := readCard()
	if err != nil {
		return Result{}, err
	}
	i := slices.IndexFunc(k.Groups, func(g group) bool {
		return g.Family == f.Family && g.Input == (f.Input > 0) && g.Layers == (f.Layers > 0)
	})
	if i < 0 {
		return Result{}, fmt.Errorf("card of the figures' model: no group of %s", f.Family)
	}
	g := k.Groups[i]
	x := Features(f)
	outside := g.outside(x)
	beyond := g.within(x)
	out, err := m.session.Run(onnx.Rows(1, x))
	if err != nil {
		return Result{}, err
	}
	context, scale := float64(Context(f.Family, env)), float64(Scale(f))
	weights := adam * float64(f.Params)
	answer := func(log float32) float64 {
		rest := max(scale*math.Exp(float64(log))-weights, 0) // the part that grows with the batch
		return context + weights + rest*beyond
	}
	point, upper := answer(out[0].Data[0]), answer(out[1].Data[0])*math.Exp(g.bound(confidence))
	settings := f.settings()
	r := Result{Context: int64(context)}
	r.Point = int64(max(point+settings, context+f.least()))
	r.Upper = max(int64(upper+settings), r.Point)
	r.Weights = min(int64(f.least()), r.Point-r.Context)
	r.Warnings = append(outside, f.notes()...)
	return r, nil
}

// bound returns the logarithm of the factor on the upper trees' answer, for the next
// higher calibrated confidence. Beyond the highest one the logarithm is doubled.
func (g group) bound(confidence float64) float64 {
	for _, b := range g.Bounds {
		if b.Confidence >= confidence-1e-9 {
			return b.Log
		}
	}
	if n := len(g.Bounds); n > 0 {
		return 2 * max(g.Bounds[n-1].Log, 0)
	}
	return math.Ln2
}

// within reduces batch size and sample size to the largest in the training data, and
// returns the factor. The trees' answer does not grow beyond that range, but activations
// do.
func (g group) within(x []float32) float64 {
	beyond := 0.0
	if len(g.Most) != len(x) {
		return 1
	}
	for _, i := range []int{2, 3, 4} {
		if over := float64(x[i]) - float64(g.Most[i]); x[i] != unknown && over > 1e-3 {
			beyond += over
			x[i] = g.Most[i]
			if i < 4 && x[4] != unknown {
				x[4] -= float32(over)
			}
		}
	}
	return math.Exp(beyond)
}

// outside names the figures outside the range of the training data.
func (g group) outside(x []float32) []string {
	var out []string
	for i, what := range map[int]string{1: "parameters", 2: "batch size", 3: "elements of a sample", 5: "layers"} {
		if len(g.Least) == len(x) && (x[i] < g.Least[i]-1e-3 || x[i] > g.Most[i]+1e-3) {
			out = append(out, fmt.Sprintf("%s %s, learned from %s to %s: a guess, and so is its bound",
				what, short(x[i]), short(g.Least[i]), short(g.Most[i])))
		}
	}
	slices.Sort(out)
	return out
}

// short formats the number of a logarithm, a large number with three digits.
func short(log float32) string {
	if x := math.Exp(float64(log)); x < 1e5 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", math.Exp(float64(log)))
}
