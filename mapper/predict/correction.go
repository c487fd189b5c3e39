package predict

import (
	"fmt"
	"math"

	"carma/mapper/model"
)

// Correction corrects the interference model for one kind of task beside another, from
// measured speeds: the log of a factor on the speed of the first, and its variance.
type Correction struct {
	Of     string  `json:"of"`
	Beside string  `json:"beside"`
	Mean   float64 `json:"mean"`
	Var    float64 `json:"var"`
}

// pairs holds the corrections of all measured pairs of kinds.
type pairs struct {
	all     []Correction
	factors []float64 // factors of the corrections in all, as predictions apply them
	// Misses and Off are the number of comparisons of a measured with a predicted log speed, and
	// the sum of the squares of their differences, less the variance of the measurements.
	Misses, Off float64
	numbers     map[string]int32   // numbers of the kinds in all, from 1
	index       map[[2]int32]int32 // index in all, by the numbers of two kinds
	// provenIs is the result of proven for the variance provenOf, which is 0 at first.
	provenOf, provenIs float64
	numbering          int         // incremented when kinds get numbers
	partners           [][]partner // partners of each kind, by its number
	near               [][]float64 // factors of the first kinds, or 0 if not measured
}

// maxPairs bounds the corrections; beyond it the oldest half is dropped.
const maxPairs = 8192

// number returns the number of a kind, or 0 if it was not measured.
func (p *pairs) number(kind string) int32 { return p.numbers[kind] }

// set changes the correction of a pair that exists.
func (p *pairs) set(k int32, mean, variance float64) {
	c := &p.all[k]
	c.Mean, c.Var, p.factors[k] = mean, variance, math.Exp(applied(mean))
	of, beside := p.numbers[c.Of], p.numbers[c.Beside]
	if of >= nearKinds || beside >= nearKinds {
		return
	}
	for int(of) >= len(p.near) {
		p.near = append(p.near, nil)
	}
	for int(beside) >= len(p.near[of]) {
		p.near[of] = append(p.near[of], 0)
	}
	p.near[of][beside] = p.factors[k]
}

// applied rounds the log of a factor to steps, so that a small change does not cause all GPUs
// to be scored again.
func applied(mean float64) float64 { return math.Round(mean/CorrectionStep) * CorrectionStep }

const CorrectionStep = 0.02

// SlowestSpeed is the lowest speed of a corrected prediction.
const SlowestSpeed = 0.02

// of returns the index of the correction of a pair, and adds it if it was never measured.
func (p *pairs) of(of, beside string) int32 {
	if len(p.all) >= maxPairs {
		kept := pairsOf(p.all[maxPairs/2:])
		kept.Misses, kept.Off, kept.numbering = p.Misses, p.Off, p.numbering+1
		*p = kept
	}
	key := [2]int32{p.enter(of), p.enter(beside)}
	k, ok := p.index[key]
	if !ok {
		k = int32(len(p.all))
		p.all, p.factors = append(p.all, Correction{of, beside, 0, p.variance()}), append(p.factors, 1)
		p.index[key] = k
		for int(key[0]) >= len(p.partners) {
			p.partners = append(p.partners, nil)
		}
		p.partners[key[0]] = append(p.partners[key[0]], partner{key[1], k})
	}
	return k
}

// variance returns the variance of the log of a predicted speed without a correction: at
// first the model's own on pairs to which it was not fitted, later more and more the
// variance observed here.
func (p *pairs) variance() float64 {
	return min(mostVariance, max(leastVariance, (priorMisses*FirstError*FirstError+p.Off)/(priorMisses+p.Misses)))
}

// proven returns the share of the allowed slowdown (less 1) that predictions may use, in steps
// of ProvenStep: each new step causes all GPUs to be scored again.
func (p *pairs) proven() float64 {
	if v := p.variance(); v != p.provenOf {
		p.provenOf, p.provenIs = v, math.Round(math.Exp(-LikelyWorst*math.Sqrt(v))/ProvenStep)*ProvenStep
	}
	return p.provenIs
}

const ProvenStep = 0.01

// The variance of a prediction starts at FirstError squared, which counts as much as
// priorMisses comparisons: few, so that measurements soon replace it.
const (
	FirstError    = 0.05
	priorMisses   = 10
	leastVariance = 0.02 * 0.02
	mostVariance  = 1
)

func (p *pairs) enter(kind string) int32 {
	if p.numbers == nil {
		p.numbers, p.index = map[string]int32{}, map[[2]int32]int32{}
	}
	n, ok := p.numbers[kind]
	if !ok {
		n = int32(len(p.numbers) + 1)
		p.numbers[kind] = n
		p.numbering++
	}
	return n
}

func (p *pairs) clone() pairs {
	c := pairsOf(p.all)
	c.Misses, c.Off = p.Misses, p.Off
	return c
}

// PairsSnapshot is the form of the measured pairs in snapshots. Misses counts the
// comparisons, and Off is the sum of the squares of their log errors.
type PairsSnapshot struct {
	All    []Correction `json:"all,omitempty"`
	Misses float64      `json:"misses,omitempty"`
	Off    float64      `json:"off,omitempty"`
}

// IsZero reports whether nothing was measured.
func (p PairsSnapshot) IsZero() bool { return len(p.All) == 0 && p.Misses == 0 }

func (p *pairs) snapshot() PairsSnapshot { return PairsSnapshot{p.all, p.Misses, p.Off} }

func (p *pairs) restore(form PairsSnapshot) error {
	for _, c := range form.All {
		if c.Of == "" || c.Beside == "" || !(c.Var >= 0 && c.Var <= 1 && math.Abs(c.Mean) <= 10) {
			return fmt.Errorf("the correction of %q beside %q is %v, %v", c.Of, c.Beside, c.Mean, c.Var)
		}
	}
	if form.Misses < 0 {
		return fmt.Errorf("%v comparisons of measured speeds", form.Misses)
	}
	*p = pairsOf(form.All)
	p.Misses, p.Off = form.Misses, form.Off
	return nil
}

// pairsOf returns pairs with the given corrections.
func pairsOf(all []Correction) pairs {
	p := pairs{}
	for _, c := range all {
		p.set(p.of(c.Of, c.Beside), c.Mean, c.Var)
	}
	return p
}

// correct learns from the measured log speed of a task beside its neighbours. sd is
// its standard deviation. It returns the tasks whose load was not known before.
func (pr *Predictor) correct(t *model.Task, measured, sd float64) (known []*model.Task) {
	g := pr.slowest(t)
	measured = min(measured, 0)
	if pr.SamplesShowTasks(g) && (math.Abs(measured-math.Log(t.Speed)) > sd || g.HasVagueBound() || pr.TaskOfUnknownLoad(g) != 0) {
		known = pr.AttributeLoad(g)
	}
	before := t.Speed
	pr.learnPairs(t, g, measured-math.Log(t.Speed), sd)
	if change := t.Speed / before; change < 1-noticeable || change > 1+noticeable {
		pr.MarkDirty()
	}
	return known
}

// noticeable is the change of a speed after which the queue is scheduled again.
const noticeable = 0.02

// learnPairs distributes the difference between a measured and a predicted log speed over
// the neighbours, in proportion to the variance of their corrections.
func (pr *Predictor) learnPairs(t *model.Task, g *model.GPU, residual, sd float64) {
	if t.Kind == "" {
		return
	}
	var of []int32
	numbers, sum := pr.pairs.numbering, sd*sd
	for range 2 { // the first time may add pairs and drop old ones
		of, sum = of[:0], sd*sd
		for i := range g.Residents {
			if o := pr.TaskByID(g.Residents[i].Task); o != t && o.Kind != "" {
				k := pr.pairs.of(t.Kind, o.Kind)
				of, sum = append(of, k), sum+pr.pairs.all[k].Var
			}
		}
	}
	if len(of) == 0 {
		return
	}
	for _, k := range of {
		residual -= pr.pairs.all[k].Mean - applied(pr.pairs.all[k].Mean)
	}
	residual = max(-MostCorrection, min(MostCorrection, residual))
	proven, numbered := pr.pairs.proven(), numbers != pr.pairs.numbering
	changed := numbered
	pr.pairs.Misses++
	pr.pairs.Off += (residual*residual - sd*sd) / float64(len(of))
	for _, k := range of {
		c := pr.pairs.all[k]
		gain := c.Var / sum
		mean := max(-MostCorrection, min(MostCorrection, c.Mean+gain*residual))
		pr.pairs.set(k, mean, c.Var*(1-gain))
		changed = changed || applied(mean) != applied(c.Mean)
	}
	if changed {
		pr.corrected(t, g, numbered)
	}
	if pr.pairs.proven() != proven {
		for _, g := range pr.GPUList() {
			g.InvalidateForecast()
		}
		pr.MarkDirty()
	}
}

// corrected predicts again on all GPUs with the kinds of t and its neighbours, after their
// corrections changed. numbered means that kinds have got other numbers.
func (pr *Predictor) corrected(t *model.Task, g *model.GPU, numbered bool) {
	kinds := []string{t.Kind}
	for i := range g.Residents {
		if o := pr.TaskByID(g.Residents[i].Task); o.Kind != "" && o.Kind != t.Kind {
			kinds = append(kinds, o.Kind)
		}
	}
	pr.UpdateSpeeds(pr.GpusOf(kinds...))
	if numbered {
		pr.derived.learned++
	}
}

// MostCorrection bounds the log of a factor, and of one measurement.
const MostCorrection = 2

// slowest returns the GPU on which a running task is slowest.
func (pr *Predictor) slowest(t *model.Task) *model.GPU {
	var slowest *model.GPU
	for _, grant := range t.Current().Grants {
		if g := pr.GPU(grant.GPU); slowest == nil || g.Resident(t.ID).Speed < slowest.Resident(t.ID).Speed {
			slowest = g
		}
	}
	return slowest
}
