package progress

import (
	"strings"

	"carma/internal/lazyregexp"
)

var (
	// foldRE matches the number of one of several equal runs: "Fold 1/5", "===== fold 3
	// of 5 =====".
	foldRE = lazyregexp.New(`(?:^|[^a-z0-9_.-])(?:fold|split|repeat|repetition|replicate|bag|seed|trial|run|member)(?: +(?:no\.?|number|id|#))? *[:=#\[(]* *#?(\d+) *(?:(?:/|of|out of) *(\d+))?(?:$|[^\d.a-z%])`)
	// announcedRE matches the text before a run's number: "Training on fold 3",
	// "INFO:root:Fold 3".
	announcedRE = lazyregexp.New(`^(?:(?:info|warning):[\w.]+:?)? *(?:now )?(?:(?:training|train|starting|start|beginning|begin|running|run|processing|process|current)(?: (?:on|of|for|with|in))?)?$`)
	// searchRE matches words of programs that train several models: Optuna, Ray Tune,
	// Keras Tuner, a sweep's agent, scikit-learn's search.
	searchRE = lazyregexp.New(`\btrial \d+ finished with|\btrial status: |\bnumber of trials: |\brunning trial #|\btrial \d+ complete\b|\bagent starting run\b|\bfitting \d+ folds for each of\b`)
)

// outer is the counter of equal runs around the training: folds, seeds, trials.
type outer struct {
	known    bool    // there are several runs
	index    float64 // number of runs that are over
	total    float64 // 0 if unknown
	fromZero bool
	first    bool
}

// read reads a clean line about the runs. It reports whether another run has begun.
func (o *outer) read(line string) bool {
	if !hinted(line, "fold;split;rep;bag;seed;trial;run;member;fitting") {
		return false
	}
	if searchRE().MatchString(line) {
		o.known, o.total = true, 0
		return false
	}
	// An announced run is at the beginning of a line, or behind a word that announces it.
	// Elsewhere, only "k/n" counts.
	f := foldRE().FindStringSubmatchIndex(line)
	if f == nil {
		return false
	}
	k, n := number(line[f[2]:f[3]]), float64(unset)
	if f[4] >= 0 {
		n = number(line[f[4]:f[5]])
	}
	if n < 0 {
		if !announcedRE().MatchString(strings.Trim(behindStamp(line[:f[0]]), " =-*#>[(\x01")) || strings.Contains(line[f[0]:f[2]], "=") || strings.Contains(line[f[0]:f[2]], ":") && strings.TrimLeft(line[f[3]:], " =-*#]):") != "" {
			return false
		}
		o.known = true
		return false
	}
	if n < 2 || k > n {
		return false
	}
	if k == 0 {
		o.fromZero = true
	} else if !o.fromZero {
		k--
	}
	if k >= n {
		return false
	}
	moved := o.first && k > o.index
	o.known, o.first, o.total, o.index = true, true, n, max(k, o.index)
	return moved
}

// explains reports whether both the current run and the number of runs are known.
func (o *outer) explains() bool { return o.known && o.total > 0 }
