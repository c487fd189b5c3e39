package progress

import (
	"strings"

	"carma/configs/patterns"
)

var (
	// runStepsRE is the number of steps of the whole run, as settings say it:
	// "Total optimization steps = 1000", "max_steps: 1000", "--train-iters 5000".
	runStepsRE = patterns.New(`(?:^|[^a-z0-9])(?:total|max|maximum|num[ _-]train|train)[ _-](?:(?:train|training|optimization|optimizer|update|gradient|num|number of)[ _-])*(?:steps?|iters?|iterations|updates?|timesteps)\b['"]?[^0-9:=,.a-z|]{0,12}(?: ?[:=] ?| |\.{2,} ?)['"]?(\d[\d,]*)(?:$|[^\d.a-z%/])`)
	// epochStepsRE is the number of steps of one epoch.
	epochStepsRE = patterns.New(`\b(?:steps|batches|iters|iterations)(?:[ _-]per|/| each|[ _-]in[ _-]each)[ _-]?epoch\b[^:=]{0,16}[:=] ?(\d[\d,]*)(?:$|[^\d.a-z%/])`)
	// epochsRE is how many epochs there will be.
	epochsRE = patterns.New(`(?:^|[^a-z_-])(?:--)?(?:(?:num|number of|n|max|total|train|training|num[ _-]train)[ _-])?(?:epochs|(?:max|num|total|n)[ _-]epoch)\b['"]?[^0-9:=,.a-z|]{0,12}(?:[:=] ?| |\.{2,} ?)['"]?(\d+)(?:$|[^\d.a-z%/])`)
)

var (
	// startRE is the number of steps that a line tells as the training starts: "Starting
	// training..., iters: 1000", "Total epochs: 8; iters: 5000".
	startRE = patterns.New(`\b(?:training\b[^0-9a-z]{0,8}|epochs: \d+; )(?:iters|iterations|steps): (\d+)(?:\.?$|[^\d.a-z%/])`)
	// imagesRE is the number of images of the whole run, in thousands.
	imagesRE = patterns.New(`\btraining (?:for|duration:) +(\d+) kimg`)
)

// optionRE is an option of a command line.
var optionRE = patterns.New(` --[a-z]`)

// setting is a number that the program has told before it trains. Different values of
// one setting are no value.
type setting struct {
	value    float64 // 0: not told
	conflict bool
}

func (s *setting) set(v float64) {
	s.conflict = s.conflict || s.value > 0 && s.value != v
	s.value = v
}

// get returns the value, or 0 if there is none.
func (s *setting) get() float64 {
	if s.conflict {
		return 0
	}
	return s.value
}

// told are the settings that say how long a run is. They count nothing; they confirm
// the counters that count to them.
type told struct {
	runSteps, epochSteps, epochs, runImages setting
}

// read takes the settings of a clean line. It reports whether there was one.
func (t *told) read(line string) bool {
	found := false
	for _, s := range [...]struct {
		hint string
		expr func() bool
	}{
		{"epoch", func() bool {
			if f := epochStepsRE().FindStringSubmatch(line); f != nil && number(f[1]) > 0 {
				t.epochSteps.set(number(f[1]))
				return true
			}
			f := epochsRE().FindStringSubmatch(line)
			if f != nil && number(f[1]) > 0 {
				t.epochs.set(number(f[1]))
			}
			return f != nil
		}},
		{"t", func() bool {
			if f := imagesRE().FindStringSubmatch(line); f != nil {
				t.runImages.set(1000 * number(f[1]))
				return true
			}
			f := startRE().FindStringSubmatch(line)
			if f == nil {
				f = runStepsRE().FindStringSubmatch(line)
			}
			if f != nil && number(f[1]) > 0 {
				t.runSteps.set(number(f[1]))
			}
			return f != nil
		}},
	} {
		if strings.Contains(line, s.hint) && s.expr() {
			found = true
		}
	}
	return found
}

// scopeOf returns what a counter with a total covers, as settings say.
func (t *told) scopeOf(total float64) scope {
	switch {
	case total <= 0:
	case total == t.runSteps.get():
		return scopeRun
	case total == t.epochSteps.get():
		return scopeEpoch
	}
	return scopeUnknown
}

// settingsLine reports whether a line lists settings: the arguments of a program, as
// argparse, dataclasses and dictionaries print them, or a command line.
func settingsLine(line string) bool {
	if strings.Contains(line, "namespace(") || strings.Contains(line, " --") && len(optionRE().FindAllString(line, 2)) == 2 {
		return true
	}
	if i := strings.IndexAny(line, "({"); i < 0 || strings.Contains(line, "loss") {
		return false
	}
	none := strings.Count(line, "=none") + strings.Count(line, ": none") + strings.Count(line, "=true") + strings.Count(line, ": true") +
		strings.Count(line, "=false") + strings.Count(line, ": false")
	return none >= 2
}
