package progress

import (
	"regexp"
	"strings"

	"carma/internal/lazyregexp"
)

// Parameters are the numbers of parameters of a model, as its program printed them.
type Parameters struct {
	// Total and Trainable are numbers of parameters, or 0 if not printed. For a quantized or
	// sharded model they are the program's own count.
	Total, Trainable float64
}

// modelSizes are the printed forms of a model's size. PEFT prints two forms in one line.
var modelSizes = [...]func() *regexp.Regexp{
	// 23.5 M    Trainable params (Lightning), 11,166,560 parameters (Ultralytics), 6,139,136 total parameters (torchtitan).
	lazyregexp.New(`(?P<n>\d[\d,]*(?:\.\d+)? ?[kmb]?) +(?P<non>non-)?(?:total|(?P<trainable>trainable)|)(?: learnable)? ?param(?:eter)?s\b`),
	// Total params: 25,636,712 (97.80 MB) (Keras, torchinfo), Number of trainable parameters = 66,955,010,
	// number of parameters: 123.59M, n_parameters: 11590840, param count:25557032.
	lazyregexp.New(`(?P<non>non-)?\b(?:(?:total|number of|num|n|all)[ _]?)?(?P<trainable>trainable[ _]?)?(?:param(?:eter)?s?|param count)(?: on [^:]*)?['"]? ?[:=] *(?P<n>\d[\d,]*(?:\.\d+)? ?(?:[kmb]\b)?)`),
}

// read reads a clean line about parameters.
func (p *Parameters) read(line string) {
	if !strings.Contains(line, "param") {
		return
	}
	for _, size := range modelSizes {
		for _, f := range size().FindAllStringSubmatch(line, 2) {
			group := func(name string) string { return f[size().SubexpIndex(name)] }
			to := &p.Total
			if group("trainable") != "" {
				to = &p.Trainable
			}
			const least = 100 // a smaller number is not the size of a model
			if n := number(group("n")); n >= least && group("non") == "" {
				*to = max(*to, n) // parts of a model are printed too
			}
		}
	}
}

// Parameters returns the printed size of the model, or false if none was printed.
func (r *Reader) Parameters() (Parameters, bool) {
	return r.params, r.params != Parameters{}
}
