package mapper

import (
	"cmp"
	"math"
	"slices"

	"carma/mapper/interference"
	"carma/mapper/model"
)

// class says how busy a task keeps a GPU, as far as it matters for its neighbours.
type class int

const (
	lightTask  class = iota // small networks: others slow them down, and they slow no other down
	mediumTask              // two fit on a GPU
	heavyTask               // it fills a GPU
	classes
)

// typicalLoads are loads of these classes. Classes end at the middle between two.
var typicalLoads = [classes]interference.Load{
	lightTask:  {SMACT: 0.17, SMOCC: 0.08, DRAMA: 0.07},
	mediumTask: {SMACT: 0.60, SMOCC: 0.30, DRAMA: 0.26},
	heavyTask:  {SMACT: 0.82, SMOCC: 0.41, DRAMA: 0.35},
}

func classOf(l interference.Load) class {
	for c := lightTask; c < heavyTask; c++ {
		if l.SMACT < (typicalLoads[c].SMACT+typicalLoads[c+1].SMACT)/2 {
			return c
		}
	}
	return heavyTask
}

// classPrior is the probability of each class, or zero if the task's load is known.
type classPrior [classes]float64

func (m classPrior) unknown() bool { return m != classPrior{} }

// The prior without any observation: for tasks on one GPU, and for tasks on several.
var (
	firstMix    = classPrior{0.35, 0.45, 0.20}
	firstMixFew = classPrior{0, 0.75, 0.25}
)

// classCounts counts the observed classes of all tasks, and of groups of tasks with
// something in common.
type classCounts struct {
	Groups []classGroup `json:"groups,omitempty"`

	index map[groupKey]int // in Groups
}

// classGroup counts the classes of a group of tasks: of a user, an image, a program.
type classGroup struct {
	Name   string     `json:"name"`
	Counts classPrior `json:"counts"`
}

// maxGroups bounds the groups; beyond it the oldest half is dropped.
const maxGroups = 4096

// groupKey is the name of a group in parts: whether its tasks are on one GPU or on
// several (1, n), and the user (u), image (i) or program (p) that they share.
type groupKey struct{ several, what, value string }

func (k groupKey) name() string { return k.several + k.what + k.value }

// groupKeyOf is the inverse of name.
func groupKeyOf(name string) groupKey {
	several, rest := name[:min(1, len(name))], name[min(1, len(name)):]
	return groupKey{several, rest[:min(1, len(rest))], rest[min(1, len(rest)):]}
}

// groupsOf appends the groups of a task, from the widest to the narrowest.
func groupsOf(t *model.Task, keys []groupKey) []groupKey {
	several := "1"
	if t.GPUs > 1 {
		several = "n"
	}
	keys = append(keys, groupKey{several, "", ""})
	for _, k := range [...]groupKey{{several, "u", t.User}, {several, "i", t.Image}, {several, "p", t.Program}} {
		if k.value != "" {
			keys = append(keys, k)
		}
	}
	return keys
}

// groupWeight is the number of tasks after which a group counts as much as the wider
// group. firstWeight is the same number for the first prior.
const (
	groupWeight = 4
	firstWeight = 20
)

// priorOf returns the prior of a task whose load is not known, in steps of mixStep.
func (pr *predictor) priorOf(t *model.Task) classPrior {
	if len(t.Expected.Loads) > 0 {
		return classPrior{}
	}
	return pr.priorAnyway(t)
}

// priorAnyway returns the prior of a task, even if its load is known.
func (pr *predictor) priorAnyway(t *model.Task) classPrior {
	m, weight := firstMix, float64(firstWeight)
	if t.GPUs > 1 {
		m = firstMixFew
	}
	var space [4]groupKey
	for _, key := range groupsOf(t, space[:0]) {
		i, ok := pr.classCounts.index[key]
		if !ok {
			continue // a new user of a known image, for example
		}
		counts, n := pr.classCounts.Groups[i].Counts, 0.0
		for _, c := range counts {
			n += c
		}
		for c := range m {
			m[c] = (m[c]*weight + counts[c]) / (weight + n)
		}
		weight = groupWeight
	}
	for c := range m {
		m[c] = math.Round(m[c]/mixStep) * mixStep
	}
	return m
}

// mixStep is the step of a prior: tasks with nearly equal priors share a score.
const mixStep = 0.05

// countClass counts a task whose load has been observed for the first time.
func (pr *predictor) countClass(t *model.Task, l interference.Load) {
	p := &pr.classCounts
	for _, key := range groupsOf(t, nil) {
		i, ok := p.index[key]
		if !ok {
			if len(p.Groups) >= maxGroups {
				p.Groups = slices.Clone(p.Groups[maxGroups/2:])
				p.reindex()
			}
			if p.index == nil {
				p.index = map[groupKey]int{}
			}
			i = len(p.Groups)
			p.Groups, p.index[key] = append(p.Groups, classGroup{Name: key.name()}), i
		}
		p.Groups[i].Counts[classOf(l)]++
	}
	pr.derived.learned++
}

// IsZero reports whether nothing was observed.
func (p classCounts) IsZero() bool { return len(p.Groups) == 0 }

func (p *classCounts) reindex() {
	p.index = make(map[groupKey]int, len(p.Groups))
	for i, c := range p.Groups {
		p.index[groupKeyOf(c.Name)] = i
	}
}

func (p classCounts) clone() classCounts {
	p.Groups = slices.Clone(p.Groups)
	p.reindex()
	return p
}

// besideInDoubt scores a candidate whose load is not known beside the tasks of a GPU: the
// mean over the classes, weighted by their probability. It rejects the candidate if it
// probably slows a task down too much. The expected cost of undoing the placement counts
// as well.
func (pl *placer) besideInDoubt(g *model.GPU, n *candidate, verdict bool) scoreResult {
	if verdict && pl.tooSlowInDoubt(g, n) {
		return scoreResult{rough: true, no: refusal{rule: model.RuleSlowdown}}
	}
	var a scoreResult
	var refused classPrior
	var worst refusal
	for c, weight := range n.prior {
		if weight == 0 {
			continue
		}
		as := pl.score(g, n.as[c])
		a.added += weight * as.added
		a.finish += weight * as.finish
		if as.no.rule == model.RuleSlowdown {
			if refused[c] = weight; as.no.slowdown > worst.slowdown {
				worst = as.no
			}
		}
	}
	if a.added += undoCost * refused.sum(); refused.sum() > riskMost {
		a.no = worst
	}
	return a
}

// tooSlowInDoubt reports whether a candidate is rejected. It tries the likeliest classes
// first and stops as soon as the answer is certain.
func (pl *placer) tooSlowInDoubt(g *model.GPU, n *candidate) bool {
	var refused classPrior
	open := 1.0
	for _, c := range n.likely {
		if n.prior[c] == 0 || refused.sum()+open < riskMost {
			return false
		}
		if open -= n.prior[c]; pl.slowdownRule(g, n.as[c]) == model.RuleSlowdown {
			refused[c] = n.prior[c]
		}
		if refused.sum() > riskMost {
			return true
		}
	}
	return false
}

// likeliest returns the classes, the likeliest first.
func (m classPrior) likeliest() (all [classes]class) {
	for c := range all {
		all[c] = class(c)
	}
	slices.SortStableFunc(all[:], func(a, b class) int { return cmp.Compare(m[b], m[a]) })
	return all
}

// sum adds up a prior, always in the same order.
func (m classPrior) sum() (sum float64) {
	for _, part := range m {
		sum += part
	}
	return sum
}

const (
	// riskMost is the largest accepted probability that a placement turns out wrong.
	riskMost = 0.35
	// undoCost is the cost of a placement that is undone, in seconds: the time until its
	// effect is known, and a start.
	undoCost = 300
)
