package progress

import (
	"strings"

	"carma/configs/patterns"
)

var (
	// rankRE is what launchers put before the lines of a process: torchrun,
	// srun --label, mpirun --tag-output.
	rankRE = patterns.New(`^(?:\[(?:rank|default)\d+\]:? ?|\[\d+,[^\]]*\]<std(?:out|err)>:? ?|\d+: )`)
	// bracketsRE is an epoch and, behind it, a step of so many: torchvision,
	// timm, OpenMMLab, Paddle, fairseq and PyTorch's examples.
	bracketsRE = patterns.New(`\b(train epoch|epoch\(train\)|epoch|train) *(:?) *(\[?) *(\d+) *(?:/ *(\d+) *(?:\( *\d+%\))?)? *\]? *[:\[ ] *(\d+) */ *(\d+)`)
	// wordRE is a word that counts, where one begins, and its number.
	wordRE = patterns.New(`^(epoch|ep|round|step|iters?|iteration|batch|update|it)(?:\((train|val|test)\))? *[:=#]? *[\[(]? *(\d+(?:,\d{3})*(?:\.\d+)?)(?: *(?:/|of|out of) *(\d+(?:,\d{3})*))?`)
	// dictRE is a key of a dictionary, Python's or JSON, and its number.
	dictRE = patterns.New(`['"](epoch|step|global_step|update|num_updates|iter|iteration)['"]: *['"]?(\d+(?:\.\d+)?)`)
	bareRE = patterns.New(`^(?:[\[(] *(\d+) */ *(\d+) *[\])]|(\d+) */ *(\d+))(?:[ :,|-] *([a-z]*)|$)`)
	dateRE = patterns.New(`^\[?\d+/\d+ \d+:\d\d`)
	// percentRE is a line that begins with a share.
	percentRE = patterns.New(`^(?:.{0,40}\b(?:progress|complete|completed|done|training)[ :=]*)?[\[(]? *(\d{1,3}(?:\.\d+)?) ?%(?:[ ,;:.)\]|]|$)`)
	// leftRE is the time to the end, behind its words or before them.
	leftRE = patterns.New(`\b(?:eta|(?:time )?(?:remaining|left|to (?:finish|go|completion))(?: time)?)\b *[:=]? *(` + timeText + `)|(` + timeText + `) *(?:left|remaining|to go)\b`)
)

// timeText is a time as clocks or words show it.
const timeText = `(?:\d+ days?,? *)?\d+(?::\d\d){1,2}|(?:\d[\d.]* *(?:days?|hours?|hrs?|minutes?|mins?|seconds?|secs?|ms|d|h|m|s)\b(?:,? and |,? *))+`

// parse reads a clean line. Lines of settings count nothing.
func parse(line string) (mark, bool) {
	if m, ok := tabled(line); ok { // first as it is: CatBoost's lines begin as srun's
		return m, true
	}
	if p := rankRE().FindString(line); p != "" {
		line = line[len(p):]
		if m, ok := tabled(line); ok {
			return m, true
		}
	}
	for _, read := range [...]func(string) (mark, bool){bar, dictionary, brackets, words, countOfSteps.read, bare, percent} {
		if m, ok := read(line); ok {
			m.figures(line)
			return m, true
		}
	}
	m := newMark(Figure, 0)
	m.figures(line)
	return m, m.figure > 0
}

// tabled reads a line of one of the formats.
func tabled(line string) (mark, bool) {
	for i := range formats {
		if m, ok := formats[i].read(line); ok {
			m.figures(line)
			return m, true
		}
	}
	return mark{}, false
}

// dictionary reads what Hugging Face's Trainer and fairseq log.
func dictionary(line string) (mark, bool) {
	begin := strings.IndexByte(line, '{')
	if begin < 0 {
		return mark{}, false
	}
	m := newMark(Dictionary, 1)
	m.name, m.unit = "epochs", EpochsU
	fraction := float64(unset)
	for _, f := range dictRE().FindAllStringSubmatch(line[begin:], 8) {
		x := number(f[2])
		switch f[1] {
		case "epoch":
			m.epoch = x
		case "update": // of fairseq: epochs, with a fraction
			fraction = x
		default:
			m.step, m.name, m.unit = x, "steps", Steps
		}
	}
	switch {
	case m.step >= 0: // steps through the whole run
		m.epoch = unset
	case fraction >= 0:
		m.step, m.epoch = fraction, unset
	case m.epoch >= 0 && strings.Contains(line, "'epoch'"): // the Trainer's, with a fraction
		m.step, m.epoch = m.epoch, unset
	case m.epoch >= 0: // a line of JSON at an epoch's end
		m.form, m.over = Epochs, true
	default:
		return mark{}, false
	}
	return m, true
}

// brackets reads an epoch with a step of so many.
func brackets(line string) (mark, bool) {
	if !strings.Contains(line, "epoch") && !strings.Contains(line, "train") {
		return mark{}, false
	}
	at := bracketsRE().FindStringSubmatchIndex(line)
	if at == nil {
		return mark{}, false
	}
	group := func(i int) string {
		if at[2*i] < 0 {
			return ""
		}
		return line[at[2*i]:at[2*i+1]]
	}
	m := newMark(Brackets, 3)
	m.unit, m.scope = Steps, scopeEpoch
	m.name = letters(group(1))
	m.setEpoch(group(4), group(5))
	if !m.setStep(group(6), group(7)) {
		return mark{}, false
	}
	word := group(1)
	// torchvision, Paddle and the ImageNet example print "Epoch: [0]", timm
	// "Train: 0"; the others count from 1.
	m.zero = word == "train" && group(5) == "" || word == "epoch" && group(2) != "" && group(3) != ""
	if word == "train epoch" && strings.Contains(line[at[1]:], "%)") {
		m.unit = Samples // PyTorch's MNIST and open_clip
	}
	m.aside = strings.Contains(line[:at[0]], "valid")
	// OpenMMLab and Paddle say when the run ends, torchvision the epoch.
	if strings.Contains(line, "data_time") || strings.Contains(line, "batch_cost") {
		m.readLeft(line)
		m.leftScope = scopeRun
	}
	return m, true
}

// settings are words before a counter's that make it a setting, or another's.
var settings = map[string]bool{
	"max": true, "total": true, "num": true, "warmup": true, "eval": true, "val": true, "test": true, "save": true, "saving": true,
	"logging": true, "log": true, "every": true, "per": true, "micro": true, "best": true, "last": true, "start": true, "validation": true,
	"from": true, "until": true, "at": true, "end": true, "after": true, "decay": true, "final": true, "evaluation": true, "fps": true, "each": true, "training": false, "number": true, "of": true, "previous": true, "next": true,
	"resume": true, "resumed": true, "resuming": true,
}

// counting are the words that count; see wordRE.
var counting = []string{"epoch", "ep", "step", "iter", "batch", "update", "it", "round"}

// wordAt reports whether a word that counts begins at i, and the word before it
// does not make it something else: max_steps, eval step, or the name of a
// function, before_epoch.
func wordAt(line string, i int) bool {
	known := false
	for _, w := range counting {
		known = known || strings.HasPrefix(line[i:], w)
	}
	if !known || i == 0 {
		return known
	}
	switch b := line[i-1]; {
	case b >= 'a' && b <= 'z', b >= '0' && b <= '9', b == '/', b == '.':
		return false
	case b == ' ', b == '_', b == '-':
		rest := strings.TrimRight(line[:i], " _-")
		word := rest[1+strings.LastIndexFunc(rest, func(r rune) bool { return r < 'a' || r > 'z' }):]
		if b == ' ' {
			return !settings[word] || word == "of" && strings.HasPrefix(line[i:], "epoch")
		}
		return word == "" || word == "global" || word == "train" || word == "training" || word == "current"
	}
	return true
}

// words reads counters by their names.
func words(line string) (mark, bool) {
	m := newMark(Words, 2)
	m.unit, m.name = Steps, "steps"
	found, end := false, 0 // end: behind the latest word that counts
	for i := 0; i < len(line); i++ {
		if b := line[i]; strings.IndexByte("esibur", b) < 0 || !wordAt(line, i) {
			continue
		}
		f := wordRE().FindStringSubmatch(line[i:])
		if f == nil || i+len(f[0]) < len(line) && letterOrPoint(line[i+len(f[0]):]) {
			continue
		}
		if !found && (f[2] == "val" || f[2] == "test" || asideLabel(behindStamp(line[:i]))) {
			m.aside = true
		}
		if found && m.step < 0 && evaluates(line[end:i]) {
			m.aside = true
		}
		if f[4] == "" && strings.HasSuffix(strings.TrimRight(line[:i], " "), " of") { // the number of steps of epoch 3
			continue
		}
		before := m.step
		found = m.word(f[1], f[3], f[4]) || found
		if before < 0 && m.step >= 0 {
			m.stepScope(line[:i], f[1])
		}
		i += len(f[0]) - 1
		end = i + 1
	}
	switch {
	case !found:
		return mark{}, false
	case m.step < 0:
		m.form, m.strength = Epochs, 1
		for _, w := range [...]string{"loss", "acc", "time", "end", "complete", "finish"} {
			m.over = m.over || strings.Contains(line, w)
		}
	case m.epoch >= 0:
		m.strength = 3
		if m.scope == scopeUnknown && m.steps > 0 && m.epochs > 0 {
			m.scope = scopeEpoch
		}
	}
	m.readLeft(line)
	if m.epoch < 0 || strings.Contains(line, "batch_cost") {
		m.leftScope = scopeRun
	}
	return m, true
}

// stepScope sets what a count covers by its word and what stands before it.
func (m *mark) stepScope(before, word string) {
	switch {
	case strings.HasSuffix(strings.TrimRight(before, "_ -"), "global"):
		m.scope, m.strength = scopeRun, 3
	case word == "batch":
		m.scope = scopeEpoch
	}
}

// evaluates reports whether the words between an epoch and a step name an evaluation:
// "ep 1 dev eval, step 0".
func evaluates(between string) bool {
	if strings.ContainsAny(between, "0123456789=:") {
		return false
	}
	for word := range strings.FieldsFuncSeq(between, func(r rune) bool { return r < 'a' || r > 'z' }) {
		switch {
		case word == "dev", word == "val", word == "test", strings.HasPrefix(word, "valid"), strings.HasPrefix(word, "eval"):
			return true
		}
	}
	return false
}

// word takes a counter's word with its number, and of how many if that is told.
// It reports whether it is one that was missing.
func (m *mark) word(word, n, of string) bool {
	switch {
	case word == "epoch" || word == "ep" || word == "round":
		if m.epoch >= 0 {
			return false
		}
		m.setEpoch(n, of)
		return m.epoch >= 0
	case m.step >= 0, of == "" && (word == "update" || word == "it"), of == "" && word == "batch" && m.epoch < 0:
		return false
	}
	return m.setStep(n, of)
}

// behindStamp leaves out what log lines begin with: a time, and whose line it is.
func behindStamp(s string) string {
	for _, sign := range []string{" - ", "]: ", "| "} {
		if i := strings.LastIndex(s, sign); i >= 0 {
			s = s[i+len(sign):]
		}
	}
	return s
}

// letterOrPoint reports whether a number goes on: 5k, 100ms, 1.2.3.
func letterOrPoint(rest string) bool {
	b := rest[0]
	return b >= 'a' && b <= 'z' || b == '_' || b == '%' || b == '.' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9'
}

// readLeft reads the time to the end.
func (m *mark) readLeft(line string) {
	if !strings.Contains(line, "eta") && !strings.Contains(line, "left") && !strings.Contains(line, "remaining") && !strings.Contains(line, "to ") {
		return
	}
	if f := leftRE().FindStringSubmatch(line); f != nil {
		m.left = duration(f[1] + f[2])
	}
}

// bare reads a line that begins with [120/5000]: ninja's and dates are not.
func bare(line string) (mark, bool) {
	line = strings.TrimLeft(line, " ")
	f := bareRE().FindStringSubmatch(line)
	if f == nil || dateRE().MatchString(line) {
		return mark{}, false
	}
	m := newMark(Bare, 1)
	m.name, m.unit = "bare", Steps
	if f[1] == "" {
		f[1], f[2] = f[3], f[4]
	}
	m.aside = asideLabel(f[5])
	return m, m.setStep(f[1], f[2]) && m.steps > 1
}

// percent reads a line that begins with a share.
func percent(line string) (mark, bool) {
	if strings.IndexByte(line, '%') < 0 {
		return mark{}, false
	}
	f := percentRE().FindStringSubmatch(strings.TrimLeft(line, " "))
	if f == nil {
		return mark{}, false
	}
	m := newMark(Percent, 1)
	m.name, m.unit = "percent", Shares
	m.aside = asideLabel(line)
	return m, m.setStep(f[1], "100")
}
