package progress

import (
	"cmp"
	"strconv"
	"strings"

	"carma/internal/lazyregexp"
)

// Form is the form of the lines that progress was read from.
type Form string

// The forms.
const (
	Tqdm       Form = "tqdm"       // 37%|###   | 37/100 [00:10<00:17, 3.6it/s]
	Trainer    Form = "trainer"    // tqdm's bar with Hugging Face's dictionaries between
	Lightning  Form = "lightning"  // tqdm's bar named Epoch 4
	Rich       Form = "rich"       // Lightning's RichProgressBar
	YOLO       Form = "yolo"       // tqdm's bar behind 3/100 4.2G 1.23
	Keras      Form = "keras"      // Epoch 1/10, then 45/1563 [===>...]
	Brackets   Form = "brackets"   // Epoch: [0] [ 10/1251], Train: 3 [ 450/1251 ( 36%)], epoch 001: 450 / 1891
	Words      Form = "words"      // step 120/5000, iteration 122/ 250000 |, iter 1230: loss
	Dictionary Form = "dictionary" // {'loss': 0.7, 'epoch': 0.12}, {"epoch": 3, "update": 2.5}
	Epochs     Form = "epochs"     // Epoch 3/10, and nothing within
	Bare       Form = "bare"       // [120/5000]
	Table      Form = "table"      // rows under a header: epoch train_loss time
	Percent    Form = "percent"    // 12%
	Figure     Form = "figure"     // 1158.7 images/s, and no counter
)

// Units of counters and figures.
const (
	Steps   = "steps"
	Images  = "images"
	Samples = "samples"
	Tokens  = "tokens"
	EpochsU = "epochs"
	Shares  = "percent"
)

// unset stands for a number that a line does not have.
const unset = -1

// mark is the content of one line. Numbers are unset where the line has none.
type mark struct {
	form Form
	name string // distinguishes counters of one form: a bar's description, without digits
	// aside is set for anything but training, such as evaluation, preparation of data and
	// downloads.
	aside bool
	// strength rates how likely the counter is the training's: 3 if it is named so, 2 if it
	// is likely, 1 if no better counter exists.
	strength int

	epoch, epochs float64 // as printed
	zero          bool    // this form counts epochs from 0
	last          bool    // epochs is the last epoch's number, counted from 0
	over          bool    // the line closes its epoch
	completed     bool    // epoch is the number of completed epochs

	step, steps float64
	unit        string
	// scope is the range of steps, leftScope the range of left.
	scope, leftScope scope

	elapsed float64 // seconds since the bar began
	left    float64 // seconds to the end of leftScope
	pace    float64 // steps per second, as printed
	figure  float64 // images, samples or tokens per second, as printed
	per     string  // the unit of figure
}

func newMark(form Form, strength int) mark {
	return mark{
		form: form, strength: strength, epoch: unset, epochs: unset, step: unset, steps: unset,
		elapsed: unset, left: unset, pace: unset, figure: unset,
	}
}

// most is the largest number that is accepted. Counting is exact up to 2^53.
const most = 1 << 50

// number reads digits with commas, a fraction and a suffix k, m or g. It returns unset if
// s is no number or too large.
func number(s string) float64 {
	factor := 1.0
	if n := len(s); n > 0 {
		switch s[n-1] {
		case 'k':
			factor = 1e3
		case 'm':
			factor = 1e6
		case 'g', 'b':
			factor = 1e9
		case 't':
			factor = 1e12
		}
		if factor > 1 {
			s = s[:n-1]
		}
	}
	if strings.IndexByte(s, ',') >= 0 {
		s = strings.ReplaceAll(s, ",", "")
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || !(x >= 0 && x*factor <= most) {
		return unset
	}
	return x * factor
}

// partRE matches one part of a time: "1 day", "12m", "40.1 seconds".
var partRE = lazyregexp.New(`(\d[\d.]*) *(days?|hours?|hrs?|minutes?|mins?|milliseconds?|seconds?|secs?|us|ms|d|h|m|s)\b`)

// clockRE matches a time such as 27:10 or 1:02:03.5.
var clockRE = lazyregexp.New(`\d+(?::\d\d){1,2}(?:\.\d+)?`)

// duration reads a time in seconds: 27:10, 1 day, 2:03:04, 16m 39s, 32.1s, 3 hours,
// 1 minute and 40.1 seconds, or a plain number.
func duration(s string) float64 {
	if s == "" {
		return unset
	}
	total, found := 0.0, false
	if strings.IndexByte(s, ':') >= 0 {
		if clock := clockRE().FindString(s); clock != "" {
			total, found = clockTime(clock), true
		}
	}
	for _, f := range partRE().FindAllStringSubmatch(s, 8) {
		x := number(f[1])
		if x < 0 {
			return unset
		}
		total, found = total+x*secondsOf(f[2]), true
	}
	if !found {
		return number(s)
	}
	return min(total, most)
}

// seconds are the units of time, in seconds, by their names or the first letters of the
// names.
var seconds = map[string]float64{"us": 1e-6, "ms": 1e-3, "mil": 1e-3, "d": 86400, "h": 3600, "m": 60, "s": 1}

// secondsOf returns the length of a unit of time in seconds.
func secondsOf(unit string) float64 {
	return cmp.Or(seconds[unit], seconds[unit[:min(3, len(unit))]], seconds[unit[:1]])
}

// clockTime reads 27:10 or 1:02:03.5, in seconds.
func clockTime(s string) float64 {
	total := 0.0
	for part := range strings.SplitSeq(s, ":") {
		total = total*60 + number(part)
	}
	return total
}

// paceOf sets the pace from the seconds per step.
func (m *mark) paceOf(seconds float64) {
	const shortest = 1e-9
	if seconds >= shortest {
		m.pace = 1 / seconds
	}
}
