package study

import (
	"carma/mapper"
	"carma/mapper/sim"
)

// ablation is the name of the group of presets that each leave one ingredient
// of policy carma out.
const ablation = "ablation"

var carmaRules = Family{"carma", "policy carma with its defaults, and without one ingredient each", sim.ScoreMean, mapper.DefaultsOf("carma")}

// ablations show what each ingredient is for: the first two with what the
// daemon knows of a task's memory, the last with estimates that are often far
// off, as these are what recovery, history and shrinking grants are for. Learning
// while a task runs shows with --know nothing. Lines of progress are left out by
// the truth silent=1.
var ablations = append(
	without("catalogue", []ingredient{
		{"", "all of it", nil},
		{"/no-reservation", "what the last sample shows in use counts as taken, not the grants", func(o *mapper.Options) { o.Booking = mapper.BookSamples }},
		{"/no-prediction", "magm with SMACT cap 0.80 and warm-up in its place, the rest as it is", noPrediction},
		{"/no-slowdown-cap", "no cap on the predicted slowdown", func(o *mapper.Options) { o.SlowdownCap = 100 }},
		{"/no-order", "first come, first served, long tasks not brought forward", func(o *mapper.Options) { o.Order = mapper.OrderFIFO }},
		{"/no-backfill", "nothing overtakes the first task that does not fit", func(o *mapper.Options) { o.LookAhead = 1 }},
		{"/no-history", "nothing is learned from earlier runs", func(o *mapper.Options) { o.Learn = false }},
		{"/no-learning", "a task of unknown memory keeps its GPUs for itself", func(o *mapper.Options) { o.LearnMemory = 0 }},
	}),
	without("gpumemnet", []ingredient{
		{":gpumemnet", "all of it, with the published estimates of GPUMemNet", nil},
		{"/no-ladder:gpumemnet", "recovery as in CARMA: on an idle GPU, and nothing else starts meanwhile", func(o *mapper.Options) { o.Recovery = mapper.RecoverOriginal }},
		{"/no-history:gpumemnet", "memory is not learned from earlier runs", func(o *mapper.Options) { o.Learn = false }},
		{"/no-shrink:gpumemnet", "grants are not cut to what is used", func(o *mapper.Options) { o.Shrink = 0 }},
		{"/no-reservation:gpumemnet", "what the last sample shows in use counts as taken", func(o *mapper.Options) { o.Booking = mapper.BookSamples }},
	})...,
)

type ingredient struct {
	name, doc string
	change    func(*mapper.Options)
}

func without(estimator string, all []ingredient) []Preset {
	var list []Preset
	for _, i := range all {
		p := Preset{"carma" + i.name, i.doc, "carma", estimator, &carmaRules, i.change}
		if i.name == "/no-prediction" {
			p.policy = "magm"
		}
		list = append(list, p)
	}
	return list
}

func noPrediction(o *mapper.Options) {
	other := mapper.DefaultsOf("magm")
	o.SMACTCap, o.WarmUp = other.SMACTCap, other.WarmUp
}

func ablationNames() []string {
	names := make([]string, len(ablations))
	for i := range ablations {
		names[i] = ablations[i].Name
	}
	return names
}
