package mapper

import (
	"cmp"
	"math"
	"slices"

	"carma/mapper/interference"
)

// class is how busy a task keeps a GPU, as far as it matters for its neighbours.
type class int

const (
	lightTask  class = iota // small networks: they feel others, nobody feels them
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

// mix is how likely a task is of each class; zero: its load is known.
type mix [classes]float64

func (m mix) unknown() bool { return m != mix{} }

// The mix that is assumed while nothing was seen: of tasks on one GPU, and of those
// on several.
var (
	firstMix    = mix{0.35, 0.45, 0.20}
	firstMixFew = mix{0, 0.75, 0.25}
)

// population counts the classes of the tasks that were seen: of all, and of those
// that have something in common.
type population struct {
	Groups []crowd `json:"groups,omitempty"`

	index map[crowdKey]int // in Groups
}

// crowd is a group of tasks: those of a user, an image, a program.
type crowd struct {
	Name   string `json:"name"`
	Counts mix    `json:"counts"`
}

// maxCrowds bounds the population; beyond it the oldest half goes.
const maxCrowds = 4096

// crowdKey is the name of a crowd in parts: whether its tasks are on one GPU or on
// several (1, n), and the user (u), image (i) or program (p) that they share.
type crowdKey struct{ several, what, value string }

func (k crowdKey) name() string { return k.several + k.what + k.value }

// crowdKeyOf is the inverse of name.
func crowdKeyOf(name string) crowdKey {
	several, rest := name[:min(1, len(name))], name[min(1, len(name)):]
	return crowdKey{several, rest[:min(1, len(rest))], rest[min(1, len(rest)):]}
}

// crowdsOf appends the crowds of a task, from the widest to the narrowest.
func crowdsOf(t *Task, keys []crowdKey) []crowdKey {
	several := "1"
	if t.GPUs > 1 {
		several = "n"
	}
	keys = append(keys, crowdKey{several, "", ""})
	for _, k := range [...]crowdKey{{several, "u", t.User}, {several, "i", t.Image}, {several, "p", t.Program}} {
		if k.value != "" {
			keys = append(keys, k)
		}
	}
	return keys
}

// crowdWeight is how many tasks of its own a group needs to count as much as the
// wider group; firstWeight is that of the first mix.
const (
	crowdWeight = 4
	firstWeight = 20
)

// mixOf is what a task may be whose load is not known, in steps of mixStep.
func (s *State) mixOf(t *Task) mix {
	if len(t.Expected.Loads) > 0 {
		return mix{}
	}
	return s.mixAnyway(t)
}

// mixAnyway is what mixOf says of a task while its load is not known.
func (s *State) mixAnyway(t *Task) mix {
	m, weight := firstMix, float64(firstWeight)
	if t.GPUs > 1 {
		m = firstMixFew
	}
	var space [4]crowdKey
	for _, key := range crowdsOf(t, space[:0]) {
		i, ok := s.population.index[key]
		if !ok {
			continue // a new user of a known image, for example
		}
		counts, n := s.population.Groups[i].Counts, 0.0
		for _, c := range counts {
			n += c
		}
		for c := range m {
			m[c] = (m[c]*weight + counts[c]) / (weight + n)
		}
		weight = crowdWeight
	}
	for c := range m {
		m[c] = math.Round(m[c]/mixStep) * mixStep
	}
	return m
}

// mixStep is the step of a mix: tasks of nearly equal mixes are weighed alike.
const mixStep = 0.05

// meetLoad counts a task whose load has been seen for the first time.
func (s *State) meetLoad(t *Task, l interference.Load) {
	p := &s.population
	for _, key := range crowdsOf(t, nil) {
		i, ok := p.index[key]
		if !ok {
			if len(p.Groups) >= maxCrowds {
				p.Groups = slices.Clone(p.Groups[maxCrowds/2:])
				p.reindex()
			}
			if p.index == nil {
				p.index = map[crowdKey]int{}
			}
			i = len(p.Groups)
			p.Groups, p.index[key] = append(p.Groups, crowd{Name: key.name()}), i
		}
		p.Groups[i].Counts[classOf(l)]++
	}
	s.notes.learned++
}

// IsZero reports whether nothing was seen.
func (p population) IsZero() bool { return len(p.Groups) == 0 }

func (p *population) reindex() {
	p.index = make(map[crowdKey]int, len(p.Groups))
	for i, c := range p.Groups {
		p.index[crowdKeyOf(c.Name)] = i
	}
}

func (p population) clone() population {
	p.Groups = slices.Clone(p.Groups)
	p.reindex()
	return p
}

// besideInDoubt weighs a newcomer whose load is not known beside the tasks of a
// GPU: as each of the classes, by how likely that is. It is refused where it is
// likely to slow somebody down too much. What it would cost to undo the placement
// counts as well.
func (s *State) besideInDoubt(g *GPU, n *newcomer, verdict bool) answer {
	if verdict && s.tooSlowInDoubt(g, n) {
		return answer{rough: true, no: refusal{rule: RuleSlowdown}}
	}
	var a answer
	var refused mix
	var worst refusal
	for c, weight := range n.mix {
		if weight == 0 {
			continue
		}
		as := s.answer(g, n.as[c])
		a.added += weight * as.added
		a.finish += weight * as.finish
		if as.no.rule == RuleSlowdown {
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

// tooSlowInDoubt reports whether a newcomer is refused. It asks about the likely
// classes first, and no further than that takes.
func (s *State) tooSlowInDoubt(g *GPU, n *newcomer) bool {
	var refused mix
	open := 1.0
	for _, c := range n.likely {
		if n.mix[c] == 0 || refused.sum()+open < riskMost {
			return false
		}
		if open -= n.mix[c]; s.verdict(g, n.as[c]) == RuleSlowdown {
			refused[c] = n.mix[c]
		}
		if refused.sum() > riskMost {
			return true
		}
	}
	return false
}

// likeliest are the classes, the likeliest first.
func (m mix) likeliest() (all [classes]class) {
	for c := range all {
		all[c] = class(c)
	}
	slices.SortStableFunc(all[:], func(a, b class) int { return cmp.Compare(m[b], m[a]) })
	return all
}

// sum adds up a mix, always in the same order.
func (m mix) sum() (sum float64) {
	for _, part := range m {
		sum += part
	}
	return sum
}

const (
	// riskMost is how likely a placement may be to turn out wrong.
	riskMost = 0.35
	// undoCost is what a placement costs that is undone, in seconds: until its
	// effect is known, and a start.
	undoCost = 300
)
