package progress

import (
	"regexp"
	"strings"

	"carma/internal/lazyregexp"
)

var (
	// runStepsRE matches the number of steps of the whole run in settings: "Total
	// optimization steps = 1000", "max_steps: 1000", "--train-iters 5000".
	runStepsRE = lazyregexp.New(`(?:^|[^a-z0-9])(?:total|max|maximum|num[ _-]train|train)[ _-](?:(?:train|training|optimization|optimizer|update|gradient|num|number of)[ _-])*(?:steps?|iters?|iterations|updates?|timesteps)\b['"]?[^0-9:=,.a-z|]{0,12}(?: ?[:=] ?| |\.{2,} ?)['"]?(\d[\d,]*)(?:$|[^\d.a-z%/])`)
	// epochStepsRE matches the number of steps of one epoch.
	epochStepsRE = lazyregexp.New(`\b(?:steps|batches|iters|iterations)(?:[ _-]per|/| each|[ _-]in[ _-]each)[ _-]?epoch\b[^:=]{0,16}[:=] ?(\d[\d,]*)(?:$|[^\d.a-z%/])`)
	// epochsRE matches the number of epochs of the run.
	epochsRE = lazyregexp.New(`(?:^|[^a-z_-])(?:--)?(?:(?:num|number of|n|max|total|train|training|num[ _-]train)[ _-])?(?:epochs|(?:max|num|total|n)[ _-]epoch)\b['"]?[^0-9:=,.a-z|]{0,12}(?:[:=] ?| |\.{2,} ?)['"]?(\d+)(?:$|[^\d.a-z%/])`)
	// startRE matches the number of steps in a line at the start of the training: "Starting
	// training..., iters: 1000", "Total epochs: 8; iters: 5000".
	startRE = lazyregexp.New(`\b(?:training\b[^0-9a-z]{0,8}|epochs: \d+; )(?:iters|iterations|steps): (\d+)(?:\.?$|[^\d.a-z%/])`)
	// imagesRE matches the number of images of the whole run, in thousands.
	imagesRE = lazyregexp.New(`\btraining (?:for|duration:) +(\d+) kimg`)
)

// optionRE matches an option of a command line.
var optionRE = lazyregexp.New(` --[a-z]`)

// setting is a number that the program printed before it trains, or 0 if it printed none.
// A setting with different values has no value.
type setting float64

func (s *setting) set(v float64) {
	if *s != 0 && *s != setting(v) {
		v = unset
	}
	*s = setting(v)
}

// get returns the value, or 0 if there is none.
func (s *setting) get() float64 { return max(0, float64(*s)) }

// told are the settings that give the length of a run. They only confirm counters whose
// total equals a setting.
type told struct {
	runSteps, epochSteps, epochs, runImages setting
}

// tells lists the printed forms of settings. Among forms with the same hint, the first
// one that matches a line counts.
var tells = []struct {
	hint  string
	expr  func() *regexp.Regexp
	of    func(*told) *setting
	times float64
}{
	{"epoch", epochStepsRE, func(t *told) *setting { return &t.epochSteps }, 1},
	{"epoch", epochsRE, func(t *told) *setting { return &t.epochs }, 1},
	{"t", imagesRE, func(t *told) *setting { return &t.runImages }, 1000},
	{"t", startRE, func(t *told) *setting { return &t.runSteps }, 1},
	{"t", runStepsRE, func(t *told) *setting { return &t.runSteps }, 1},
}

// read stores the settings in a clean line. It reports whether the line has one.
func (t *told) read(line string) bool {
	read := ""
	for _, w := range tells {
		if w.hint == read || !strings.Contains(line, w.hint) {
			continue
		}
		if f := w.expr().FindStringSubmatch(line); f != nil {
			read = w.hint
			if v := w.times * number(f[1]); v > 0 {
				w.of(t).set(v)
			}
		}
	}
	return read != ""
}

// scopeOf returns the range of a counter with a total, according to settings.
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
