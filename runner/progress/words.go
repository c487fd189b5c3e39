package progress

import (
	"strings"

	"carma/internal/lazyregexp"
)

var (
	// rankRE matches the prefix that launchers put before the lines of a process: torchrun,
	// srun --label, mpirun --tag-output.
	rankRE = lazyregexp.New(`^(?:\[(?:rank|default)\d+\]:? ?|\[\d+,[^\]]*\]<std(?:out|err)>:? ?|\d+: )`)
	// wordRE matches, at the beginning of a word, a word that counts and its number.
	wordRE = lazyregexp.New(`^(epoch|ep|round|step|iters?|iteration|batch|update|it)(?:\((train|val|test)\))? *[:=#]? *[\[(]? *(\d+(?:,\d{3})*(?:\.\d+)?)(?: *(?:/|of|out of) *(\d+(?:,\d{3})*))?([a-z_%]|\.\d)?`)
	// evaluatesRE matches the words between an epoch and a step that name an evaluation: "ep
	// 1 dev eval, step 0".
	evaluatesRE = lazyregexp.New(`^[^0-9=:]*\b(?:dev|val|test|valid[a-z]*|eval[a-z]*)\b[^0-9=:]*$`)
	// overRE matches words of a line that closes its epoch.
	overRE = lazyregexp.New(`loss|acc|time|end|complete|finish`)
)

// settings are words before a counter's word that make it a setting or another counter.
var settings = map[string]bool{
	"max": true, "total": true, "num": true, "warmup": true, "eval": true, "val": true, "test": true, "save": true, "saving": true,
	"logging": true, "log": true, "every": true, "per": true, "micro": true, "best": true, "last": true, "start": true, "validation": true,
	"from": true, "until": true, "at": true, "end": true, "after": true, "decay": true, "final": true, "evaluation": true, "fps": true, "each": true, "training": false, "number": true, "of": true, "previous": true, "next": true,
	"resume": true, "resumed": true, "resuming": true,
}

// wordAt reports whether a word that counts may begin at i. It may not if the previous
// word changes its meaning, as in max_steps, eval step or before_epoch.
func wordAt(line string, i int) bool {
	if i == 0 {
		return true
	}
	switch b := line[i-1]; {
	case b >= 'a' && b <= 'z', b >= '0' && b <= '9', b == '/', b == '.':
		return false
	case b == ' ', b == '_', b == '-':
		rest := strings.TrimRight(line[:i], " _-")
		word := rest[1+strings.LastIndexFunc(rest, notLetter):]
		if b == ' ' {
			return !settings[word] || word == "of" && strings.HasPrefix(line[i:], "epoch")
		}
		return word == "" || word == "global" || word == "train" || word == "training" || word == "current"
	}
	return true
}

func notLetter(r rune) bool { return r < 'a' || r > 'z' }

// words reads counters by their names.
func words(line string) (mark, bool) {
	m := newMark(Words, 2)
	m.unit, m.name = Steps, "steps"
	found, end := false, 0 // end is the position behind the latest word that counts
	for i := 0; i < len(line); i++ {
		if i+1 < len(line) && !strings.Contains("ep st it ba up ro", line[i:i+2]) || !wordAt(line, i) {
			continue
		}
		f := wordRE().FindStringSubmatch(line[i:])
		if f == nil || f[5] != "" { // 5k, 100ms, 1.2.3
			continue
		}
		before := line[:i]
		m.aside = m.aside || !found && (f[2] == "val" || f[2] == "test" || asideLabel(behindStamp(before))) || found && m.step < 0 && evaluatesRE().MatchString(line[end:i])
		if f[4] == "" && strings.HasSuffix(strings.TrimRight(before, " "), " of") { // the number of steps of epoch 3
			continue
		}
		found = m.word(before, f[1], f[3], f[4]) || found
		i += len(f[0]) - 1
		end = i + 1
	}
	switch {
	case !found:
		return mark{}, false
	case m.step < 0:
		m.form, m.strength, m.over = Epochs, 1, overRE().MatchString(line)
	case m.epoch >= 0:
		m.strength = 3
		if m.scope == scopeUnknown && m.steps > 0 && m.epochs > 0 {
			m.scope = scopeEpoch
		}
	}
	m.beside(line, besideWords)
	if m.epoch < 0 || strings.Contains(line, "batch_cost") {
		m.leftScope = scopeRun
	}
	return m, true
}

// word stores a counter's word with its number, its total if the line has one, and the
// text before it. It reports whether the mark lacked that counter before.
func (m *mark) word(before, word, n, of string) bool {
	switch {
	case word == "epoch" || word == "ep" || word == "round":
		if m.epoch >= 0 {
			return false
		}
		m.epoch, m.epochs = number(n), number(of)
		m.sensible()
		return m.epoch >= 0
	case m.step >= 0, of == "" && (word == "update" || word == "it"), of == "" && word == "batch" && m.epoch < 0:
		return false
	}
	if m.step, m.steps = number(n), number(of); !m.sensible() {
		m.step, m.steps = unset, unset
		return false
	}
	switch {
	case strings.HasSuffix(strings.TrimRight(before, "_ -"), "global"):
		m.scope, m.strength = scopeRun, 3
	case word == "batch":
		m.scope = scopeEpoch
	}
	return true
}

// behindStamp removes the beginning of log lines: a time, and the line's source.
func behindStamp(s string) string {
	for _, sign := range []string{" - ", "]: ", "| "} {
		if i := strings.LastIndex(s, sign); i >= 0 {
			s = s[i+len(sign):]
		}
	}
	return s
}
