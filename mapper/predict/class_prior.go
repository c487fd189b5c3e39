package predict

import (
	"cmp"
	"math"
	"slices"

	"carma/mapper/interference"
	"carma/mapper/model"
)

// Class is the activity of a task in the coarse steps that matter for its neighbours.
type Class int

const (
	LightTask  Class = iota // small networks: other tasks slow them down, but they slow down no other task
	MediumTask              // two such tasks fit on a GPU
	HeavyTask               // one such task fills a GPU
	Classes
)

// TypicalLoads contains a typical load of each class. The limit between two classes is the mean
// of their typical SM activities.
var TypicalLoads = [Classes]interference.Load{
	LightTask:  {SMACT: 0.17, SMOCC: 0.08, DRAMA: 0.07},
	MediumTask: {SMACT: 0.60, SMOCC: 0.30, DRAMA: 0.26},
	HeavyTask:  {SMACT: 0.82, SMOCC: 0.41, DRAMA: 0.35},
}

func classOf(l interference.Load) Class {
	for c := LightTask; c < HeavyTask; c++ {
		if l.SMACT < (TypicalLoads[c].SMACT+TypicalLoads[c+1].SMACT)/2 {
			return c
		}
	}
	return HeavyTask
}

// ClassPrior is the probability of each class, or zero if the task's load is known.
type ClassPrior [Classes]float64

// IsUnknown reports whether the load is not known.
func (m ClassPrior) IsUnknown() bool { return m != ClassPrior{} }

// The priors without any observation, for tasks on one GPU and for tasks on several.
var (
	firstMix    = ClassPrior{0.35, 0.45, 0.20}
	firstMixFew = ClassPrior{0, 0.75, 0.25}
)

// classCounts counts the observed classes of all tasks, and of groups of tasks with
// something in common.
type classCounts struct {
	Groups []ClassGroup `json:"groups,omitempty"`

	index map[groupKey]int // in Groups
}

// ClassGroup counts the classes of a group of tasks: of a user, an image, a program.
type ClassGroup struct {
	Name   string     `json:"name"`
	Counts ClassPrior `json:"counts"`
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

// groupWeight is the number of tasks after which the prior of a group has the same weight as
// the prior of the wider group. firstWeight is the same number for the first prior.
const (
	groupWeight = 4
	firstWeight = 20
)

// Prior returns the prior of a task whose load is not known, in steps of mixStep.
func (pr *Predictor) Prior(t *model.Task) ClassPrior {
	if len(t.Expected.Loads) > 0 {
		return ClassPrior{}
	}
	return pr.priorAnyway(t)
}

// priorAnyway returns the prior of a task, even if its load is known.
func (pr *Predictor) priorAnyway(t *model.Task) ClassPrior {
	m, weight := firstMix, float64(firstWeight)
	if t.GPUs > 1 {
		m = firstMixFew
	}
	var space [4]groupKey
	for _, key := range groupsOf(t, space[:0]) {
		i, ok := pr.classCounts.index[key]
		if !ok {
			continue // no observation yet, for example a new user of a known image
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
func (pr *Predictor) countClass(t *model.Task, l interference.Load) {
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
			p.Groups, p.index[key] = append(p.Groups, ClassGroup{Name: key.name()}), i
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

// Likeliest returns the classes, the likeliest first.
func (m ClassPrior) Likeliest() (all [Classes]Class) {
	for c := range all {
		all[c] = Class(c)
	}
	slices.SortStableFunc(all[:], func(a, b Class) int { return cmp.Compare(m[b], m[a]) })
	return all
}

// Sum adds up a prior, always in the same order.
func (m ClassPrior) Sum() (sum float64) {
	for _, part := range m {
		sum += part
	}
	return sum
}
