package progress

import (
	"slices"
	"strings"

	"carma/internal/lazyregexp"
)

// labels are the formats of the descriptions before bars. The first format that matches
// applies.
var labels = []format{
	{name: "epochs", unit: EpochsU, expr: lazyregexp.New(`^(?:train(?:ing)?[^a-z0-9]*)?epochs?(?:[^a-z0-9]*progress)?$`)},
	{name: "yolo", form: YOLO, strength: 3, scope: scopeEpoch, last: true, expr: lazyregexp.New(`^ *(?P<epoch>\d+)/(?P<epochs>\d+) +[\d.]+(?:g|gb|m|mb) `)},
	{name: "torchtune", form: Tqdm, strength: 3, scope: scopeEpoch, expr: lazyregexp.New(`^ *(?P<epoch>\d+)\|\d+\|`)},
	{name: "epoch of", form: Tqdm, strength: 3, scope: scopeEpoch, expr: lazyregexp.New(`\b(?:epoch|episode)[: ]*[\[(]? *(?P<epoch>\d+) *(?:/|of) *(?P<epochs>\d+)`)},
	{name: "lightning", form: Lightning, strength: 3, scope: scopeEpoch, zero: true, expr: lazyregexp.New(`\b(?:epoch|episode)[: ]*[\[(]? *(?P<epoch>\d+)`)},
	{name: "run", form: Tqdm, strength: 3, scope: scopeRun, expr: lazyregexp.New(`training progress|overall|^total`)},
	{name: "training", form: Tqdm, strength: 3, expr: lazyregexp.New(`train|^steps`)},
}

// label reads the description before a bar.
func (m *mark) label(s string) {
	s = strings.Trim(s, " :|\x01")
	m.name = letters(s)
	if m.aside = asideLabel(s); m.aside {
		return
	}
	for i := range labels {
		f := &labels[i]
		found := f.expr().FindStringSubmatch(s)
		if found == nil {
			continue
		}
		if f.form == YOLO {
			m.name = "yolo" // the label of such a bar consists of metrics
		}
		if m.form == Tqdm && f.form != "" {
			m.form = f.form
		}
		m.completed, m.strength, m.scope, m.zero, m.last = f.unit == EpochsU, max(m.strength, f.strength), max(m.scope, f.scope), f.zero, m.last || f.last
		m.take(f, found)
		return
	}
}

// letters returns a label without digits and signs, cut to 24 letters.
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

// preparing are prefixes of the first word of labels of anything but training.
var preparing = []string{
	"val", "eval", "test", "predict", "sanity", "infer", "map", "filter", "download", "fetch", "load", "generat", "tokeniz",
	"cach", "scan", "extract", "upload", "sav", "writ", "preprocess", "prepar", "resolv", "read", "pack", "shard", "comput",
	"build", "creat", "convert", "index", "import", "copy", "collect", "quantiz", "flatten", "cast", "concat", "group",
	"unpack", "unzip", "dataset", "reference", "decompress", "verif", "check", "compil", "link", "install", "plot",
}

// asideLabel reports whether a bar's label, or the text before a line's numbers, names
// something else than training.
func asideLabel(s string) bool {
	if strings.Contains(s, "map50") || strings.Contains(s, "map@") { // YOLO's validation
		return true
	}
	words, train := 0, false
	for word := range strings.FieldsFuncSeq(s, notLetter) {
		words++
		begins := func(p string) bool { return strings.HasPrefix(word, p) }
		switch {
		case words == 1, words == 2 && train: // train: Scanning
			train = word == "train"
			if slices.ContainsFunc(preparing, begins) {
				return true
			}
			if words == 2 {
				return false
			}
		case begins("train"), words > 5:
			return false
		case word == "val", word == "test", word == "testing", slices.ContainsFunc(evaluating, begins):
			return true
		}
	}
	return false
}

var evaluating = []string{"valid", "eval", "tokeniz", "predict"}
