package progress

import (
	"strings"

	"carma/configs/patterns"
)

// Parameters is how many numbers a model learns, as its program printed it.
type Parameters struct {
	// Total and Trainable are numbers of parameters; 0: not printed. With a
	// quantized or sharded model they are what the program thinks they are.
	Total, Trainable float64
}

var (
	// peftRE: trainable params: 12,600,000 || all params: 6,751,015,936 (PEFT).
	peftRE = patterns.New(`trainable params: *([\d,]+) *\|\| *all params: *([\d,]+)`)
	// paramsRE: Total params: 25,636,712 (97.80 MB) (Keras, torchinfo), Number of trainable parameters = 66,955,010,
	// number of parameters: 123.59M, n_parameters: 11590840, param count:25557032.
	paramsRE = patterns.New(`(non-)?(?:\b(total|trainable|number of|num|n|all) ?_?(trainable )?|\b)(?:param(?:eter)?s?|param count)(?: on [^:]*)?['"]? ?[:=] *(\d[\d,]*(?:\.\d+)?) ?([kmb]\b)?`)
	// behindRE: 23.5 M    Trainable params (Lightning), 11,166,560 parameters (Ultralytics), 6,139,136 total parameters (torchtitan).
	behindRE = patterns.New(`(\d[\d,]*(?:\.\d+)?) ?([kmb])? +(non-)?(total|trainable|)(?: learnable)? ?param(?:eter)?s\b`)
)

// read takes what a clean line says about parameters.
func (p *Parameters) read(line string) {
	if !strings.Contains(line, "param") {
		return
	}
	if f := peftRE().FindStringSubmatch(line); f != nil {
		p.set(&p.Trainable, number(f[1]))
		p.set(&p.Total, number(f[2]))
		return
	}
	if f := behindRE().FindStringSubmatch(line); f != nil {
		p.named(f[3] != "", f[4] == "trainable", number(f[1]+f[2]))
		return
	}
	if f := paramsRE().FindStringSubmatch(line); f != nil {
		p.named(f[1] != "", f[2] == "trainable" || f[3] != "", number(f[4]+f[5]))
	}
}

// named sets a number by how it was called. A model of a few parameters is a
// line about something else.
func (p *Parameters) named(non, trainable bool, n float64) {
	switch {
	case non:
	case trainable:
		p.set(&p.Trainable, n)
	default:
		p.set(&p.Total, n)
	}
}

// set keeps the largest: parts of a model are printed too.
func (p *Parameters) set(to *float64, n float64) {
	const least = 100
	if n >= least {
		*to = max(*to, n)
	}
}

// Parameters returns what was printed about the model's size; false: nothing.
func (r *Reader) Parameters() (Parameters, bool) {
	return r.params, r.params != Parameters{}
}
