package progress

import (
	"regexp"
	"strings"

	"carma/configs/patterns"
)

// scope is the part of a run that a counter, or a time to the end, covers.
type scope uint8

const (
	scopeUnknown scope = iota
	scopeRun           // the whole run
	scopeEpoch         // one epoch
)

// format is the printed form of one or more programs. Its expression is searched in
// clean lines that contain hint. The names of its groups say what it yields:
//
//	epoch, epochs   the epoch and their number
//	step, steps     the count and its total
//	thousands       the count in thousands
//	share           the done share, in percent: of the run, or of the epoch by the scope
//	elapsed, left   times, in any form that [duration] reads
//	leftHours       a number of hours
//	each            the time of one step
//	rate            steps per second
//	other           a word that makes the line an evaluation, unless it is "train"
//
// testdata/formats.txt holds lines that a format reads and lines that it does not.
type format struct {
	name, hint string
	expr       func() *regexp.Regexp
	form       Form
	unit       string
	strength   int
	// scope is what the counter covers, leftScope what the printed time left covers.
	scope, leftScope scope
	// zero: epochs count from 0. over: the line closes its epoch.
	zero, over bool
}

var formats = []format{
	{name: "rich", hint: "\x01", form: Rich, unit: Steps, strength: 2, scope: scopeEpoch,
		expr: patterns.New(`^(?P<label>.*?)(?P<step>\d+)/(?P<steps>\d+) +(?P<elapsed>\d+:\d\d:\d\d) \x01 ?(?P<left>\d+:\d\d:\d\d|-:--:--)`)},
	{name: "keras", hint: "/", form: Keras, unit: Steps, strength: 3, scope: scopeEpoch,
		expr: patterns.New(`^ *(?P<step>\d+)/(?P<steps>\d+|unknown) *(?:\[[=>. ]*\] *(?:- )?|\x01[\x01 ]*|- )(?:eta: )?(?:\d[\d:]*s?)\b(?:.*?\b(?P<each>\d+(?:us|ms|s))/(?:step|epoch|iter|sample))?`)},
	{name: "fastai", hint: "| ", form: Brackets, unit: Steps, strength: 3, scope: scopeEpoch,
		expr: patterns.New(`^ *epoch (?P<epoch>\d+)/(?P<epochs>\d+) : \|.*\| [\d.]+% \[(?P<step>\d+)/(?P<steps>\d+) [\d:]+<[\d:]+`)},
	{name: "rich progress", hint: "it/s", form: Tqdm, unit: Steps, strength: 2,
		expr: patterns.New(`^(?P<label>.*?)\d+% \x01[\x01 ]*(?P<step>[\d,]+)/(?P<steps>[\d,]+) +\[ *(?P<elapsed>\d+:\d\d:\d\d) < (?P<left>\d+:\d\d:\d\d|-:--:--) *, *(?P<rate>[\d,.]+|\?) it/s`)},
	{name: "progressbar2", hint: " of ", form: Tqdm, unit: Steps, strength: 2,
		expr: patterns.New(`^(?P<label>.*?)\d+% \((?P<step>\d+) of (?P<steps>\d+)\) \|[^|]*\| *(?:elapsed time: (?P<elapsed>[\d:]+))?`)},
	{name: "alive-progress", hint: " in ", form: Tqdm, unit: Steps, strength: 2,
		expr: patterns.New(`^(?P<label>[^|]*)\|[^|]*\| (?:\x01 )?(?P<step>\d+)/(?P<steps>\d+) \[\d+%\] in (?P<elapsed>[\d:.]+s?)`)},
	{name: "progressmeter", hint: "eta: ", form: Tqdm, unit: Shares, strength: 1,
		expr: patterns.New(`^(?P<label>[^%|]*?)(?P<share>\d{1,3})%\|[^|]*\| +eta: (?P<left>[\d:]+)`)},
	{name: "click", hint: "] ", form: Tqdm, unit: Shares, strength: 1,
		expr: patterns.New(`^(?P<label>[^\[]*)\[#*-*\] +(?P<share>\d{1,3})%`)},
	{name: "composer", hint: "batch=", form: Words, unit: Steps, strength: 3,
		expr: patterns.New(`^(?:\[epoch=(?P<epoch>\d+)\])?\[batch=(?P<step>\d+)/(?P<steps>\d+)\]`)},
	{name: "nemo", hint: "training epoch", form: Words, unit: Steps, strength: 3, scope: scopeRun,
		expr: patterns.New(`\btraining epoch (?:\d+), iteration (?P<step>\d+)/(?P<steps>\d+)\b`)},
	{name: "swift", hint: "global_step/max_steps", form: Words, unit: Steps, strength: 3, scope: scopeRun,
		expr: patterns.New(`['"]global_step/max_steps['"]: ['"](?P<step>\d+)/(?P<steps>\d+)['"]`)},
	{name: "llamafactory", hint: "total_steps", form: Words, unit: Steps, strength: 3, scope: scopeRun,
		expr: patterns.New(`['"]current_steps['"]: (?P<step>\d+), ['"]total_steps['"]: (?P<steps>\d+)`)},
	{name: "gan", hint: "][", form: Brackets, unit: Steps, strength: 3, scope: scopeEpoch,
		expr: patterns.New(`^\[(?P<epoch>\d+)/(?P<epochs>\d+)\] ?\[(?P<step>\d+)/(?P<steps>\d+)\]`)},
	{name: "metric logger", hint: "eta: ", form: Words, unit: Steps, strength: 3, leftScope: scopeRun,
		expr: patterns.New(`\btraining +\[ *(?P<step>\d+)/(?P<steps>\d+)\] +eta: (?P<left>(?:\d+ days?, )?[\d:]+)`)},
	{name: "espnet", hint: "batch: ", form: Words, unit: Steps, strength: 3, scope: scopeEpoch,
		expr: patterns.New(`\b(?P<epoch>\d+)epoch:(?P<other>\w+):\d+-(?P<step>\d+)batch: `)},
	{name: "espnet epoch", hint: "epoch started", form: Epochs, unit: EpochsU, strength: 1,
		expr: patterns.New(`\b(?P<epoch>\d+)/(?P<epochs>\d+)epoch started\.`)},
	{name: "catboost", hint: "remaining: ", form: Words, unit: Steps, strength: 3, scope: scopeRun, leftScope: scopeRun,
		expr: patterns.New(`^(?P<step>\d+): +learn: .* total: +(?P<elapsed>[\d.hms ]+?) +remaining: +(?P<left>[\d.dhmsu ]+)`)},
	{name: "darknet", hint: " hours left", form: Words, unit: Steps, strength: 3, scope: scopeRun, leftScope: scopeRun,
		expr: patterns.New(`^ *(?P<step>\d+): [\d.]+, [\d.]+ avg.* (?P<leftHours>[\d.]+) hours left`)},
	{name: "namd", hint: " hours remaining", form: Words, unit: Steps, strength: 3, scope: scopeRun, leftScope: scopeRun,
		expr: patterns.New(`^timing: (?P<step>\d+) .* (?P<leftHours>[\d.]+) hours remaining`)},
	{name: "gromacs", hint: "remaining wall clock time", form: Words, unit: Steps, strength: 3, scope: scopeRun, leftScope: scopeRun,
		expr: patterns.New(`^step (?P<step>\d+), remaining wall clock time: +(?P<left>\d+ s)\b`)},
	{name: "nerfstudio", hint: "%) ", form: Percent, unit: Shares, strength: 2, scope: scopeRun,
		expr: patterns.New(`^\d+ \((?P<share>[\d.]+)%\) +[\d.]+ m?s +`)},
	{name: "chainer", hint: "total [", form: Percent, unit: Shares, strength: 2, scope: scopeRun,
		expr: patterns.New(`^ *total \[[#.]*\] +(?P<share>[\d.]+)%`)},
	{name: "marian", hint: " : up. ", form: Words, unit: Steps, strength: 3, scope: scopeRun,
		expr: patterns.New(`\bep\. \d+ : up\. (?P<step>\d+) :`)},
	{name: "stable baselines", hint: "total_timesteps", form: Words, unit: Steps, strength: 3, scope: scopeRun,
		expr: patterns.New(`^\| +(?:time/)?total_timesteps +\| (?P<step>\d+) +\|`)},
	{name: "logger table", hint: "| step ", form: Words, unit: Steps, strength: 3, scope: scopeRun,
		expr: patterns.New(`^\| +step +\| (?P<step>\d[\d.]*(?:e\+\d+)?) +\|`)},
	{name: "clu", hint: "logging_writer.py:", form: Words, unit: Steps, strength: 3, scope: scopeRun,
		expr: patterns.New(`\blogging_writer\.py:\d+\] \[(?P<step>\d+)\] `)},
	{name: "tqdm_loggable", hint: "progress on:", form: Tqdm, unit: Steps, strength: 2,
		expr: patterns.New(`\bprogress on:(?P<label>.*?) ?(?P<step>\d[\d.]*[kmgt]?)[a-z]*/(?P<steps>\d[\d.]*[kmgt]?)[a-z]* rate:(?:(?P<rate>[\d.]+)[a-z]*/s)?.* remaining:(?P<left>[\d:]*).* elapsed:(?P<elapsed>[\d:]+)`)},
	{name: "rl_games", hint: " frames: ", form: Words, unit: Steps, strength: 3, scope: scopeRun,
		expr: patterns.New(`\bepoch: \d+(?:/\d+)? frames: (?P<step>\d+)/(?P<steps>\d+)`)},
	{name: "sockeye", hint: " s/sec=", form: Words, unit: Steps, strength: 3, scope: scopeRun,
		expr: patterns.New(`\be=\d+ b=(?P<step>\d+) s/sec=`)},
	{name: "stylegan", hint: " kimg ", form: Words, unit: Images, strength: 3, scope: scopeRun,
		expr: patterns.New(`\btick \d+ +kimg (?P<thousands>[\d.]+) +time `)},
	{name: "vits", hint: "train epoch", form: Brackets, unit: Steps, strength: 3, scope: scopeEpoch,
		expr: patterns.New(`\btrain epoch: (?P<epoch>\d+) \[(?P<share>\d+)%\]`)},
	{name: "boosting", hint: "] ", form: Words, unit: Steps, strength: 2, scope: scopeRun,
		expr: patterns.New(`^\[(?P<step>\d+)\] +(?:[a-z]+_?\d*[-'][a-z0-9 @_-]+:|train(?:ing)?\b|valid)`)},
}

// countOfSteps is the plain form "120/5000 steps".
var countOfSteps = &format{
	name: "count of steps", hint: "/", form: Words, unit: Steps, strength: 2,
	expr: patterns.New(`(?:^|[ :=\[(])(?P<step>\d[\d,]*) ?/ ?(?P<steps>\d[\d,]*) (?:training )?(?:steps|iterations|iters|updates)\b`),
}

// read reads a line of the format.
func (f *format) read(line string) (mark, bool) {
	if !strings.Contains(line, f.hint) {
		return mark{}, false
	}
	found := f.expr().FindStringSubmatch(line)
	if found == nil {
		return mark{}, false
	}
	m := newMark(f.form, f.strength)
	m.name, m.unit, m.scope, m.leftScope, m.zero, m.over = "steps", f.unit, f.scope, f.leftScope, f.zero, f.over
	group := func(name string) string {
		if i := f.expr().SubexpIndex(name); i >= 0 {
			return found[i]
		}
		return ""
	}
	if label := group("label"); label != "" || f.form == Tqdm || f.form == Rich || f.form == Keras {
		m.name = ""
		if f.form != Keras {
			m.label(label)
			m.form, m.unit = f.form, f.unit
			m.last = f.form == Rich && m.epochs > 0
		}
	}
	if e := group("epoch"); e != "" {
		m.setEpoch(e, group("epochs"))
	}
	if s := group("share"); s != "" {
		if f.scope != scopeEpoch {
			m.name = "percent"
		}
		return m, m.setStep(s, "100")
	}
	if s := group("thousands"); s != "" {
		m.step = 1000 * number(s)
	}
	if s := group("step"); s != "" && !m.setStep(s, group("steps")) {
		return mark{}, false
	}
	m.elapsed, m.left = duration(group("elapsed")), duration(group("left"))
	if hours := number(group("leftHours")); hours >= 0 {
		m.left = 3600 * hours
	}
	if each := duration(group("each")); each > 0 {
		m.paceOf(each)
	}
	if rate := number(group("rate")); rate > 0 {
		m.pace = rate
	}
	if other := group("other"); other != "" && other != "train" {
		m.aside = true
	}
	return m, m.step >= 0 || m.epoch >= 0
}
