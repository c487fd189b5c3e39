package progress

import (
	"cmp"
	"regexp"
	"strings"

	"carma/internal/lazyregexp"
)

// scope is the part of a run that a counter, or a time to the end, covers.
type scope uint8

const (
	scopeUnknown scope = iota
	scopeRun           // the whole run
	scopeEpoch         // one epoch
)

// format is the printed form of one or more programs. Its expression is searched in clean
// lines that contain hint, or one of several hints with semicolons between. The names of
// its groups identify the values; a digit at the end of a name distinguishes the groups
// of alternatives:
//
//	label           the text before a bar, parsed with labels
//	epoch, epochs   the epoch and their number
//	step, steps     the count and its total
//	thousands       the count in thousands
//	share           the done share, in percent: of the run, or of the epoch by the scope
//	elapsed, left   times, in any form that [duration] reads
//	leftHours       a number of hours
//	each            the time of one step
//	rate            steps per second
//	unit            the unit of the steps; units lists them
//	figure, per     the throughput per second, and its unit
//	behind          the text after a bar, parsed with besideBar
//	word            a text that names an evaluation or the training
//	valid           a text of an evaluation
//	other           a word that makes the line an evaluation, unless it is "train"
//
// testdata/formats.txt contains lines that a format must read and lines that it must not.
type format struct {
	name, hint string
	expr       func() *regexp.Regexp
	near       func() *regexp.Regexp          // searched before expr, as it is faster
	read       func(line string) (mark, bool) // in place of expr
	form       Form
	unit       string
	strength   int
	// scope is the range of the counter, leftScope the range of the printed time left.
	scope, leftScope scope
	// zero is set if epochs count from 0, last if epochs is the last epoch's number from
	// 0, over if the line closes its epoch, and labeled if the counter's name is its
	// label. withRank is set if the expression needs the line with the rank that a
	// launcher prints.
	zero, last, over, labeled, withRank bool
}

var formats = []format{
	{name: "rich", labeled: true, last: true, hint: "\x01", form: Rich, unit: Steps, strength: 2, scope: scopeEpoch,
		expr: lazyregexp.New(`^(?P<label>.*?)(?P<step>\d+)/(?P<steps>\d+) +(?P<elapsed>\d+:\d\d:\d\d) \x01 ?(?P<left>\d+:\d\d:\d\d|-:--:--)`)},
	{name: "keras", labeled: true, hint: "/", form: Keras, unit: Steps, strength: 3, scope: scopeEpoch,
		expr: lazyregexp.New(`^ *(?P<step>\d+)/(?:(?P<steps>\d+)|unknown) *(?:\[[=>. ]*\] *(?:- )?|\x01[\x01 ]*|- )(?:eta: )?(?:\d[\d:]*s?)\b(?:.*?\b(?P<each>\d+(?:us|ms|s))/(?:step|epoch|iter|sample))?`)},
	{name: "fastai", hint: "| ", form: Brackets, unit: Steps, strength: 3, scope: scopeEpoch,
		expr: lazyregexp.New(`^ *epoch (?P<epoch>\d+)/(?P<epochs>\d+) : \|.*\| [\d.]+% \[(?P<step>\d+)/(?P<steps>\d+) [\d:]+<[\d:]+`)},
	{name: "rich progress", labeled: true, hint: "it/s", form: Tqdm, unit: Steps, strength: 2,
		expr: lazyregexp.New(`^(?P<label>.*?)\d+% \x01[\x01 ]*(?P<step>[\d,]+)/(?P<steps>[\d,]+) +\[ *(?P<elapsed>\d+:\d\d:\d\d) < (?P<left>\d+:\d\d:\d\d|-:--:--) *, *(?P<rate>[\d,.]+|\?) it/s`)},
	{name: "progressbar2", labeled: true, hint: " of ", form: Tqdm, unit: Steps, strength: 2,
		expr: lazyregexp.New(`^(?P<label>.*?)\d+% \((?P<step>\d+) of (?P<steps>\d+)\) \|[^|]*\| *(?:elapsed time: (?P<elapsed>[\d:]+))?`)},
	{name: "alive-progress", labeled: true, hint: " in ", form: Tqdm, unit: Steps, strength: 2,
		expr: lazyregexp.New(`^(?P<label>[^|]*)\|[^|]*\| (?:\x01 )?(?P<step>\d+)/(?P<steps>\d+) \[\d+%\] in (?P<elapsed>[\d:.]+s?)`)},
	{name: "progressmeter", labeled: true, hint: "eta: ", form: Tqdm, unit: Shares, strength: 1,
		expr: lazyregexp.New(`^(?P<label>[^%|]*?)(?P<share>\d{1,3})%\|[^|]*\| +eta: (?P<left>[\d:]+)`)},
	{name: "click", labeled: true, hint: "] ", form: Tqdm, unit: Shares, strength: 1,
		expr: lazyregexp.New(`^(?P<label>[^\[]*)\[#*-*\] +(?P<share>\d{1,3})%`)},
	{name: "composer", hint: "batch=", form: Words, unit: Steps, strength: 3,
		expr: lazyregexp.New(`^(?:\[epoch=(?P<epoch>\d+)\])?\[batch=(?P<step>\d+)/(?P<steps>\d+)\]`)},
	{name: "nemo", hint: "training epoch", form: Words, unit: Steps, strength: 3, scope: scopeRun,
		expr: lazyregexp.New(`\btraining epoch (?:\d+), iteration (?P<step>\d+)/(?P<steps>\d+)\b`)},
	{name: "swift", hint: "global_step/max_steps", form: Words, unit: Steps, strength: 3, scope: scopeRun,
		expr: lazyregexp.New(`['"]global_step/max_steps['"]: ['"](?P<step>\d+)/(?P<steps>\d+)['"]`)},
	{name: "llamafactory", hint: "total_steps", form: Words, unit: Steps, strength: 3, scope: scopeRun,
		expr: lazyregexp.New(`['"]current_steps['"]: (?P<step>\d+), ['"]total_steps['"]: (?P<steps>\d+)`)},
	{name: "gan", hint: "][", form: Brackets, unit: Steps, strength: 3, scope: scopeEpoch,
		expr: lazyregexp.New(`^\[(?P<epoch>\d+)/(?P<epochs>\d+)\] ?\[(?P<step>\d+)/(?P<steps>\d+)\]`)},
	{name: "metric logger", hint: "eta: ", form: Words, unit: Steps, strength: 3, leftScope: scopeRun,
		expr: lazyregexp.New(`\btraining +\[ *(?P<step>\d+)/(?P<steps>\d+)\] +eta: (?P<left>(?:\d+ days?, )?[\d:]+)`)},
	{name: "espnet", hint: "batch: ", form: Words, unit: Steps, strength: 3, scope: scopeEpoch,
		expr: lazyregexp.New(`\b(?P<epoch>\d+)epoch:(?P<other>\w+):\d+-(?P<step>\d+)batch: `)},
	{name: "espnet epoch", hint: "epoch started", form: Epochs, unit: EpochsU, strength: 1,
		expr: lazyregexp.New(`\b(?P<epoch>\d+)/(?P<epochs>\d+)epoch started\.`)},
	{name: "catboost", withRank: true, hint: "remaining: ", form: Words, unit: Steps, strength: 3, scope: scopeRun, leftScope: scopeRun,
		expr: lazyregexp.New(`^(?P<step>\d+): +learn: .* total: +(?P<elapsed>[\d.hms ]+?) +remaining: +(?P<left>[\d.dhmsu ]+)`)},
	{name: "darknet", withRank: true, hint: " hours left", form: Words, unit: Steps, strength: 3, scope: scopeRun, leftScope: scopeRun,
		expr: lazyregexp.New(`^ *(?P<step>\d+): [\d.]+, [\d.]+ avg.* (?P<leftHours>[\d.]+) hours left`)},
	{name: "namd", hint: " hours remaining", form: Words, unit: Steps, strength: 3, scope: scopeRun, leftScope: scopeRun,
		expr: lazyregexp.New(`^timing: (?P<step>\d+) .* (?P<leftHours>[\d.]+) hours remaining`)},
	{name: "gromacs", hint: "remaining wall clock time", form: Words, unit: Steps, strength: 3, scope: scopeRun, leftScope: scopeRun,
		expr: lazyregexp.New(`^step (?P<step>\d+), remaining wall clock time: +(?P<left>\d+ s)\b`)},
	{name: "nerfstudio", hint: "%) ", form: Percent, unit: Shares, strength: 2, scope: scopeRun,
		expr: lazyregexp.New(`^\d+ \((?P<share>[\d.]+)%\) +[\d.]+ m?s +`)},
	{name: "chainer", hint: "total [", form: Percent, unit: Shares, strength: 2, scope: scopeRun,
		expr: lazyregexp.New(`^ *total \[[#.]*\] +(?P<share>[\d.]+)%`)},
	{name: "marian", hint: " : up. ", form: Words, unit: Steps, strength: 3, scope: scopeRun,
		expr: lazyregexp.New(`\bep\. \d+ : up\. (?P<step>\d+) :`)},
	{name: "stable baselines", hint: "total_timesteps", form: Words, unit: Steps, strength: 3, scope: scopeRun,
		expr: lazyregexp.New(`^\| +(?:time/)?total_timesteps +\| (?P<step>\d+) +\|`)},
	{name: "logger table", hint: "| step ", form: Words, unit: Steps, strength: 3, scope: scopeRun,
		expr: lazyregexp.New(`^\| +step +\| (?P<step>\d[\d.]*(?:e\+\d+)?) +\|`)},
	{name: "clu", hint: "logging_writer.py:", form: Words, unit: Steps, strength: 3, scope: scopeRun,
		expr: lazyregexp.New(`\blogging_writer\.py:\d+\] \[(?P<step>\d+)\] `)},
	{name: "tqdm_loggable", labeled: true, hint: "progress on:", form: Tqdm, unit: Steps, strength: 2,
		expr: lazyregexp.New(`\bprogress on:(?P<label>.*?) ?(?P<step>\d[\d.]*[kmgt]?)[a-z]*/(?P<steps>\d[\d.]*[kmgt]?)[a-z]* rate:(?:(?P<rate>[\d.]+)[a-z]*/s)?.* remaining:(?P<left>[\d:]*).* elapsed:(?P<elapsed>[\d:]+)`)},
	{name: "rl_games", hint: " frames: ", form: Words, unit: Steps, strength: 3, scope: scopeRun,
		expr: lazyregexp.New(`\bepoch: \d+(?:/\d+)? frames: (?P<step>\d+)/(?P<steps>\d+)`)},
	{name: "sockeye", hint: " s/sec=", form: Words, unit: Steps, strength: 3, scope: scopeRun,
		expr: lazyregexp.New(`\be=\d+ b=(?P<step>\d+) s/sec=`)},
	{name: "stylegan", hint: " kimg ", form: Words, unit: Images, strength: 3, scope: scopeRun,
		expr: lazyregexp.New(`\btick \d+ +kimg (?P<thousands>[\d.]+) +time `)},
	{name: "vits", hint: "train epoch", form: Brackets, unit: Steps, strength: 3, scope: scopeEpoch,
		expr: lazyregexp.New(`\btrain epoch: (?P<epoch>\d+) \[(?P<share>\d+)%\]`)},
	{name: "boosting", hint: "] ", form: Words, unit: Steps, strength: 2, scope: scopeRun,
		expr: lazyregexp.New(`^\[(?P<step>\d+)\] +(?:[a-z]+_?\d*[-'][a-z0-9 @_-]+:|train(?:ing)?\b|valid)`)},
	{name: "tqdm", hint: "%", form: Tqdm, unit: Steps, strength: 2, labeled: true,
		expr: lazyregexp.New(`^(?P<label>.*?)\d{1,3}% ?(?:\|[^|]*\||\x01)? *(?P<step>` + amount + `)/(?P<steps>` + amount + `)(?P<unit>[a-z]*)(?P<behind>.*)`)},
	{name: "tqdm without a total", hint: " [", near: lazyregexp.New(` \[\d\d?:\d\d`), form: Tqdm, unit: Steps, strength: 2, labeled: true,
		expr: lazyregexp.New(`^(?P<label>.*?)(?:^|[ :])(?P<step>\d[\d.]*[kmg]?) ?(?P<unit>[a-z]+) \[(?P<elapsed>\d+:\d\d(?::\d\d)?), `)},
	{name: "steps of a dictionary", hint: "{", form: Dictionary, unit: Steps, strength: 1,
		expr: lazyregexp.New(`\{.*['"](?:step|global_step|num_updates|iter|iteration)['"]: *['"]?(?P<step>\d+(?:\.\d+)?)`)},
	{name: "updates of fairseq", hint: "\"update\"", form: Dictionary, unit: EpochsU, strength: 1,
		expr: lazyregexp.New(`\{.*"update": *"?(?P<step>\d+(?:\.\d+)?)`)},
	{name: "hugging face", hint: "'epoch'", form: Dictionary, unit: EpochsU, strength: 1,
		expr: lazyregexp.New(`\{.*'epoch': *'?(?P<step>\d+(?:\.\d+)?)`)},
	{name: "json of an epoch", hint: "\"epoch\"", form: Epochs, unit: EpochsU, strength: 1, over: true,
		expr: lazyregexp.New(`\{.*"epoch": *"?(?P<epoch>\d+(?:\.\d+)?)`)},
	{name: "paddledetection", hint: "batch_cost", form: Brackets, unit: Steps, strength: 3, scope: scopeEpoch, zero: true, leftScope: scopeRun,
		expr: lazyregexp.New(`\bepoch *: *\[ *(?P<epoch>\d+)` + stepIn + untilEnd)},
	{name: "openmmlab", hint: "data_time;batch_cost", form: Brackets, unit: Steps, strength: 3, scope: scopeEpoch, leftScope: scopeRun,
		expr: lazyregexp.New(`\b(?:epoch\(train\)|epoch|train)` + epochAndStep + untilEnd)},
	{name: "mnist", hint: "train epoch", form: Brackets, unit: Samples, strength: 3, scope: scopeEpoch,
		expr: lazyregexp.New(`\btrain epoch` + epochAndStep + `.*%\)`)},
	{name: "torchvision", hint: "epoch", form: Brackets, unit: Steps, strength: 3, scope: scopeEpoch, zero: true,
		expr: lazyregexp.New(`\bepoch *: *\[ *(?P<epoch>\d+)` + stepIn)},
	{name: "timm", hint: "train", form: Brackets, unit: Steps, strength: 3, scope: scopeEpoch, zero: true,
		expr: lazyregexp.New(`\btrain *:? *\[? *(?P<epoch>\d+) *\]? *[:\[ ] *(?P<step>\d+) */ *(?P<steps>\d+)`)},
	{name: "epoch and step", hint: "epoch;train", form: Brackets, unit: Steps, strength: 3, scope: scopeEpoch,
		expr: lazyregexp.New(`(?P<valid>(?:valid|eval).*)?\b(?:train epoch|epoch\(train\)|epoch|train)` + epochAndStep)},
	{name: "words", read: words},
	{name: "count of steps", hint: " steps; iter; updates", form: Words, unit: Steps, strength: 2,
		expr: lazyregexp.New(`(?:^|[ :=\[(])(?P<step>\d[\d,]*) ?/ ?(?P<steps>\d[\d,]*) (?:training )?(?:steps|iterations|iters|updates)\b`)},
	{name: "bare", hint: "/", form: Bare, unit: Steps, strength: 1,
		expr: lazyregexp.New(`^ *(?:[\[(] *(?P<step>\d+) */ *(?P<steps>\d+) *[\])](?:[ :,|-] *(?P<word>[a-z]*)|$)|(?P<step2>\d+) */ *(?P<steps2>\d+)(?:$|[:,|-] *(?P<word2>[a-z]*)| +(?P<word3>[a-z]*)(?:$|\d+$|\d+[^\d:]|\D)))`)},
	{name: "percent", hint: "%", form: Percent, unit: Shares, strength: 1,
		expr: lazyregexp.New(`^ *(?P<word>.{0,40}\b(?:progress|complete|completed|done|training)[ :=]*)?[\[(]? *(?P<share>\d{1,3}(?:\.\d+)?) ?%(?:$|[ ,;:.)\]|](?P<word2>.*))`)},
}

// Parts of expressions: an amount, an epoch and a step with their totals, and a time as
// clocks or words show it.
const (
	amount       = `\d[\d.]*[kmgt]?`
	stepIn       = ` *(?:/ *(?P<epochs>\d+) *(?:\( *\d+%\))?)? *\]? *[:\[ ] *(?P<step>\d+) */ *(?P<steps>\d+)`
	epochAndStep = ` *:? *\[? *(?P<epoch>\d+)` + stepIn
	untilEnd     = `(?:.*?\beta *:? *(?P<left>` + timeText + `))?`
	timeText     = `(?:\d+ days?,? *)?\d+(?::\d\d){1,2}|(?:\d[\d.]* *(?:days?|hours?|hrs?|minutes?|mins?|seconds?|secs?|ms|d|h|m|s)\b(?:,? and |,? *))+`
	counts       = `(?P<per>img|imgs|images?|samples?|seqs?|sequences?|examples?|tokens?|toks?|words?)`
)

// besideBar are the formats of the text after a bar: elapsed and remaining time, and the
// speed.
var besideBar = []format{
	{hint: "<", expr: lazyregexp.New(`(?P<elapsed>\d[\d:.]*)s?<(?:\d[\d:.]*|\?)`)},
	{hint: "/", expr: lazyregexp.New(`(?P<rate>\d[\d.]*[kmg]?) ?(?P<unit>[a-z]+)/s\b|(?P<each>\d[\d.]*)s/(?P<unit2>[a-z]+)`)},
}

// besideWords are the formats of the time to the end.
var besideWords = []format{
	{hint: "eta;left;remaining;to ", expr: lazyregexp.New(`\b(?:eta|(?:time )?(?:remaining|left|to (?:finish|go|completion))(?: time)?)\b *[:=]? *(?P<left>` + timeText + `)|(?P<left2>` + timeText + `) *(?:left|remaining|to go)\b`)},
}

// besideAll are the formats of throughputs beside a count: 1158.7 images/s; ips: 96.2,
// wps=962, tokens_per_second: 76477.73, SamplesPerSec=83.5; timm's time: 0.221s,
// 1158.7/s.
var besideAll = []format{
	{hint: "g/s;gs/s;e/s;es/s;q/s;qs/s;n/s;ns/s;k/s;ks/s;d/s;ds/s;s per s", expr: lazyregexp.New(`(?P<figure>\d[\d,]*\.?\d* ?[kmg]?)` + counts + `(?:/| per )s(?:ec(?:ond)?)?\b`)},
	{hint: "g/s;s/s;k/s;ips;wps;tps;per_s;spersec", expr: lazyregexp.New(`(?:(?:^|[^a-z_])(?P<per>img/s|images/s|ips|wps|tps|tok/s|tokens/s|tokens_per_second|samples/s|samples_per_second)|(?P<per2>samplespersec))(?:ec)?['"]? *[:=]? *(?P<figure>\d[\d,]*\.?\d*)`)},
	{hint: "time: ", expr: lazyregexp.New(`time: \d[\d.]*s, +(?P<figure>\d[\d.]*)(?P<per>/s)`)},
}

// parse reads a clean line with the first format that reads it.
func parse(line string) (mark, bool) {
	behindRank := line[len(rankRE().FindString(line)):]
	for i := range formats {
		text := behindRank
		if formats[i].withRank {
			text = line
		}
		if m, ok := formats[i].mark(text); ok {
			m.beside(text, besideAll)
			return m, true
		}
	}
	m := newMark(Figure, 0)
	m.beside(behindRank, besideAll)
	return m, m.figure > 0
}

// mark reads a line of the format. A line with an invalid number is not of the format.
func (f *format) mark(line string) (mark, bool) {
	switch {
	case !hinted(line, f.hint), f.near != nil && !f.near().MatchString(line):
		return mark{}, false
	case f.read != nil:
		return f.read(line)
	}
	found := f.expr().FindStringSubmatch(line)
	if found == nil {
		return mark{}, false
	}
	m := newMark(f.form, f.strength)
	m.unit, m.scope, m.leftScope, m.zero, m.last, m.over = f.unit, f.scope, f.leftScope, f.zero, f.last, f.over
	if !f.labeled {
		m.name = "steps"
	}
	m.take(f, found)
	if f.labeled && (m.completed || m.unit == EpochsU) {
		m.epoch, m.epochs, m.completed = m.step, m.steps, true
		m.step, m.steps, m.strength = unset, unset, 1
	}
	return m, m.sensible() && (m.step >= 0 || m.epoch >= 0)
}

// take stores the groups that an expression has found.
func (m *mark) take(f *format, found []string) {
	for i, name := range f.expr().SubexpNames() {
		text := found[i]
		if text == "" {
			continue
		}
		switch strings.TrimRight(name, "23") {
		case "label":
			m.label(text)
		case "epoch":
			m.epoch = number(text)
		case "epochs":
			m.epochs = number(text)
		case "step":
			m.step = number(text)
		case "steps":
			m.steps = number(text)
		case "thousands":
			m.step = 1000 * number(text)
		case "share":
			m.step, m.steps = number(text), 100
		case "elapsed":
			m.elapsed = duration(text)
		case "left":
			m.left = duration(text)
		case "leftHours":
			m.left = 3600 * number(text)
		case "each":
			m.paceOf(duration(text))
		case "rate":
			m.pace = number(text)
		case "unit":
			m.unit = unitOf(text)
			m.aside = m.aside || m.unit == ""
		case "figure":
			m.figure = number(text)
		case "per":
			m.per = cmp.Or(unitOf(text), Samples)
		case "behind":
			m.beside(text, besideBar)
		case "word":
			m.aside = m.aside || asideLabel(text)
		case "valid":
			m.aside = true
		case "other":
			m.aside = text != "train"
		}
	}
}

// beside reads a line with some formats, and stores at most one throughput.
func (m *mark) beside(line string, formats []format) {
	for i := range formats {
		if f := &formats[i]; m.figure < 0 && hinted(line, f.hint) {
			if found := f.expr().FindStringSubmatch(line); found != nil {
				m.take(f, found)
			}
		}
	}
}

// hinted reports whether a line contains one of the texts of a hint.
func hinted(line, hint string) bool {
	for more := true; more; {
		var text string
		if text, hint, more = strings.Cut(hint, ";"); strings.Contains(line, text) {
			return true
		}
	}
	return false
}

// sensible removes totals that are below the count. It reports whether the count is
// valid.
func (m *mark) sensible() bool {
	if m.epochs <= 0 || m.epochs < m.epoch {
		m.epochs = unset
	}
	return m.steps != 0 && (m.steps < 0 || m.step <= m.steps)
}

// units maps the prefixes that programs print to units. Bars of data sets and downloads
// have the unit "".
var units = []struct{ prefix, unit string }{
	{"epoch", EpochsU}, {"im", Images}, {"ip", Images}, {"/s", Images}, {"tok", Tokens}, {"wo", Tokens}, {"wp", Tokens}, {"tp", Tokens}, {"sample", Samples}, {"seq", Samples},
	{"example", ""}, {"file", ""}, {"shard", ""}, {"table", ""}, {"split", ""}, {"row", ""},
}

// unitOf returns the unit that a text names.
func unitOf(text string) string {
	for _, u := range units {
		if strings.HasPrefix(text, u.prefix) {
			return u.unit
		}
	}
	if text == "b" || len(text) == 2 && text[1] == 'b' {
		return ""
	}
	return Steps
}
