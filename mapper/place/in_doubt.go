package place

import (
	"carma/mapper/model"
	"carma/mapper/predict"
)

// besideInDoubt scores a candidate whose load is not known beside the tasks of a GPU: the
// mean over the classes, weighted by their probability. It rejects the candidate if it
// probably slows a task down too much. The expected cost of undoing the placement counts
// as well.
func (sc *scorer) besideInDoubt(g *model.GPU, n *candidate, verdict bool) scoreResult {
	if verdict && sc.tooSlowInDoubt(g, n) {
		return scoreResult{rough: true, no: refusal{rule: model.RuleSlowdown}}
	}
	var a scoreResult
	var refused predict.ClassPrior
	var worst refusal
	for c, weight := range n.prior {
		if weight == 0 {
			continue
		}
		as := sc.score(g, n.as[c])
		a.added += weight * as.added
		a.finish += weight * as.finish
		if as.no.rule == model.RuleSlowdown {
			if refused[c] = weight; as.no.slowdown > worst.slowdown {
				worst = as.no
			}
		}
	}
	if a.added += undoCost * refused.Sum(); refused.Sum() > riskMost {
		a.no = worst
	}
	return a
}

// tooSlowInDoubt reports whether a candidate is rejected. It tries the likeliest classes
// first and stops as soon as the answer is certain.
func (sc *scorer) tooSlowInDoubt(g *model.GPU, n *candidate) bool {
	var refused predict.ClassPrior
	open := 1.0
	for _, c := range n.likely {
		if n.prior[c] == 0 || refused.Sum()+open < riskMost {
			return false
		}
		if open -= n.prior[c]; sc.slowdownRule(g, n.as[c]) == model.RuleSlowdown {
			refused[c] = n.prior[c]
		}
		if refused.Sum() > riskMost {
			return true
		}
	}
	return false
}

const (
	// riskMost is the largest accepted probability that a placement turns out wrong.
	riskMost = 0.35
	// undoCost is the cost of a placement that is undone, in seconds: the time until its
	// effect is known, and a start.
	undoCost = 300
)
