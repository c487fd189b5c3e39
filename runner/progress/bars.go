package progress

import (
	"strings"

	"carma/configs/patterns"
)

// Lines that the forms are read from are clean: see clean. The forms were
// compared with the real output that testdata holds, and with logs that users
// of the tools have posted.

var (
	// barRE is tqdm's bar, whole or cut off behind it, and Ultralytics' own.
	barRE = patterns.New(`(\d{1,3})% ?(?:\|[^|]*\||\x01)? *(\d[\d.]*[kmgt]?)/(\d[\d.]*[kmgt]?)([a-z]*)`)
	// untilRE: what passed and what remains.
	untilRE = patterns.New(`(\d[\d:.]*)s?<(\d[\d:.]*|\?)`)
	// speedRE is 2.38it/s or 1.14s/it, of whatever.
	speedRE = patterns.New(`(\d[\d.]*)([kmg]?) ?([a-z]+)/s\b|(\d[\d.]*)s/([a-z]+)`)
	// openRE is tqdm's count without a total.
	openRE = patterns.New(`(?:^|[ :])(\d[\d.]*[kmg]?) ?([a-z]+) \[(\d+:\d\d(?::\d\d)?), `)

	labelEpochRE = patterns.New(`\b(?:epoch|episode)[: ]*[\[(]? *(\d+)(?: *(?:/|of) *(\d+))?`)
	yoloRE       = patterns.New(`^ *(\d+)/(\d+) +[\d.]+(?:g|gb|m|mb) `)
	torchtuneRE  = patterns.New(`^ *(\d+)\|\d+\|`)
)

// bar reads tqdm's bars.
func bar(line string) (mark, bool) {
	if strings.IndexByte(line, '%') < 0 {
		return openBar(line)
	}
	at := barRE().FindStringSubmatchIndex(line)
	if at == nil {
		return mark{}, false
	}
	m := newMark(Tqdm, 2)
	if !m.setStep(line[at[4]:at[5]], line[at[6]:at[7]]) || m.steps < 0 {
		return mark{}, false
	}
	m.unit = line[at[8]:at[9]]
	m.label(line[:at[0]])
	m.times(line[at[1]:])
	m.nameUnit()
	return m, true
}

// openBar reads a bar without a total. Most lines are none, so a clock in
// brackets is searched before.
func openBar(line string) (mark, bool) {
	clock := -1
	for i := 0; i+5 < len(line) && clock < 0; i++ {
		if line[i] == ' ' && line[i+1] == '[' && (line[i+3] == ':' || line[i+4] == ':') {
			clock = i
		}
	}
	if clock < 0 {
		return mark{}, false
	}
	at := openRE().FindStringSubmatchIndex(line)
	if at == nil {
		return mark{}, false
	}
	m := newMark(Tqdm, 2)
	m.step, m.unit, m.elapsed = number(line[at[2]:at[3]]), line[at[4]:at[5]], clockTime(line[at[6]:at[7]])
	m.label(line[:at[0]])
	m.nameUnit()
	return m, m.step >= 0
}

// times reads what stands behind a bar.
func (m *mark) times(rest string) {
	if t := untilRE().FindStringSubmatch(rest); t != nil {
		m.elapsed = clockTime(t[1])
	}
	s := speedRE().FindStringSubmatch(rest)
	switch {
	case s == nil:
	case s[1] != "":
		m.pace = number(s[1] + s[2])
		m.unit = s[3]
	default:
		m.paceOf(number(s[4]))
		m.unit = s[5]
	}
}

// nameUnit turns a bar's unit into ours, and knows the bars of data by it.
func (m *mark) nameUnit() {
	switch u := m.unit; {
	case u == "epoch" || u == "epochs":
		m.wholeEpochs()
	case strings.HasPrefix(u, "im"):
		m.unit = Images
	case strings.HasPrefix(u, "tok"):
		m.unit = Tokens
	case strings.HasPrefix(u, "sample"), strings.HasPrefix(u, "seq"):
		m.unit = Samples
	case strings.HasPrefix(u, "example"), strings.HasPrefix(u, "file"), strings.HasPrefix(u, "shard"), strings.HasPrefix(u, "table"),
		strings.HasPrefix(u, "split"), strings.HasPrefix(u, "row"), u == "b", len(u) == 2 && u[1] == 'b':
		m.aside = true // datasets' bars and downloads
	default:
		m.unit = Steps
	}
}

// wholeEpochs makes a bar one whose steps are epochs.
func (m *mark) wholeEpochs() {
	if m.completed {
		return
	}
	m.epoch, m.epochs, m.completed = m.step, m.steps, true
	m.step, m.steps, m.unit = unset, unset, EpochsU
	m.strength = 1
}

// label reads the description before a bar.
func (m *mark) label(s string) {
	s = strings.Trim(s, " :|\x01")
	m.name = letters(s)
	m.aside = asideLabel(s)
	switch {
	case m.aside:
	case epochBars[m.name] && !strings.ContainsAny(s, "0123456789"):
		m.wholeEpochs()
	case yoloRE().MatchString(s):
		f := yoloRE().FindStringSubmatch(s)
		m.form, m.name, m.strength, m.last, m.scope = YOLO, "yolo", 3, true, scopeEpoch
		m.setEpoch(f[1], f[2])
	case torchtuneRE().MatchString(s):
		m.setEpoch(torchtuneRE().FindStringSubmatch(s)[1], "")
		m.strength, m.scope = 3, scopeEpoch
	case labelEpochRE().MatchString(s):
		f := labelEpochRE().FindStringSubmatch(s)
		m.setEpoch(f[1], f[2])
		m.strength, m.scope = 3, scopeEpoch
		if f[2] == "" {
			m.form, m.zero = Lightning, true
		}
	case strings.Contains(s, "training progress"), strings.Contains(s, "overall"), strings.HasPrefix(s, "total"):
		m.strength, m.scope = 3, scopeRun
	case strings.Contains(s, "train"), strings.HasPrefix(s, "steps"):
		m.strength = 3
	}
}

// epochBars are the names of bars whose steps are epochs.
var epochBars = map[string]bool{
	"epoch": true, "epochs": true, "trainepoch": true, "trainepochs": true, "trainingepoch": true, "trainingepochs": true, "epochprogress": true,
}

// letters is a label without digits and signs, of at most 24 letters.
func letters(s string) string {
	var b [24]byte
	n := 0
	for i := 0; i < len(s) && n < len(b); i++ {
		if s[i] >= 'a' && s[i] <= 'z' {
			b[n] = s[i]
			n++
		}
	}
	return string(b[:n])
}

// preparing are the beginnings of the first word of labels that are no training.
var preparing = []string{
	"val", "eval", "test", "predict", "sanity", "infer", "map", "filter", "download", "fetch", "load", "generat", "tokeniz",
	"cach", "scan", "extract", "upload", "sav", "writ", "preprocess", "prepar", "resolv", "read", "pack", "shard", "comput",
	"build", "creat", "convert", "index", "import", "copy", "collect", "quantiz", "flatten", "cast", "concat", "group",
	"unpack", "unzip", "dataset", "reference", "decompress", "verif", "check", "compil", "link", "install", "plot",
}

// asideLabel reports whether a bar's label, or what a line has before its
// numbers, names something else than training.
func asideLabel(s string) bool {
	if strings.Contains(s, "map50") || strings.Contains(s, "map@") { // YOLO's validation
		return true
	}
	words, train := 0, false
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return r < 'a' || r > 'z' }) {
		words++
		switch {
		case words == 1, words == 2 && train: // train: Scanning
			train = words == 1 && word == "train"
			for _, p := range preparing {
				if strings.HasPrefix(word, p) {
					return true
				}
			}
			if words == 2 {
				return false
			}
		case strings.HasPrefix(word, "train"), words > 5:
			return false
		case word == "val", word == "test", word == "testing", strings.HasPrefix(word, "valid"), strings.HasPrefix(word, "eval"),
			strings.HasPrefix(word, "tokeniz"), strings.HasPrefix(word, "predict"):
			return true
		}
	}
	return false
}
