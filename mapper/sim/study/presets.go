package study

import (
	"slices"
	"strings"
	"time"

	"carma/mapper/units"

	"carma/mapper"
	"carma/mapper/sim"
)

// Preset is a policy of CARMA or AEGIS with all that belonged to it: the
// mapper's options, the estimator and the monitor's score. test/lab/studies.md
// tells where each value is from, and what is not modelled.
type Preset struct {
	Name, Doc string
	policy    string
	estimator string
	family    *Family
	// change is what the preset has otherwise than its family; nil: nothing.
	change func(*mapper.Options)
}

// Family is what presets have in common.
type Family struct {
	Name, Doc string
	Score     sim.Score
	Rules     mapper.Options // the policy apart
}

// strict is first come, first served, with nothing that the originals do not
// have: no learning, no shrinking.
var strict = mapper.Options{
	Booking: mapper.BookSamples, IdleFirst: true, Order: mapper.OrderFIFO, LookAhead: 1,
	Attempts: 4, BlamelessRetries: 8, Backoff: 10 * time.Second,
}

var (
	v2 = Family{"v2", "CARMA of November 2025 (GitHub itu-rad/CARMA, commit e044017)", sim.ScoreRisk, with(strict, func(o *mapper.Options) {
		o.Headroom, o.Margin = 512*units.MiB, 2*units.GiB
		o.SMACTCap, o.SMOCCCap, o.DRAMACap = 0.80, 0.45, 0.40
		o.WarmUp, o.Interval, o.Recovery = 30*time.Second, time.Second, mapper.RecoverOriginal
	})}
	v1 = Family{"v1", "the first CARMA (GitHub ehsanyousefzadehasl/CARMA)", sim.ScoreMean, with(strict, func(o *mapper.Options) {
		o.Margin, o.SMACTCap, o.Interval, o.Recovery = 2000*units.MiB, 0.80, 65*time.Second, mapper.RecoverOriginal
	})}
	aegis = Family{"AEGIS", "its successor (GitHub ehsanyousefzadehasl/AEGIS), on 3 GPUs", sim.ScoreRisk, with(v2.Rules, func(o *mapper.Options) {
		o.SMACTCap, o.SMOCCCap, o.DRAMACap = 0.65, 0.35, 0.50
	})}
)

func with(o mapper.Options, change func(*mapper.Options)) mapper.Options {
	change(&o)
	return o
}

// presets are all of them, in the order in which they are listed.
var presets = slices.Concat([]Preset{
	{"Exclusive", "one task per GPU, strictly in order: what ratios are to", "exclusive", "none", &v2, func(o *mapper.Options) { noCap(o); o.Interval = 0 }},
	{"oracle-FF", "true peak, lowest index that fits", "first-fit", "oracle", &v2, nil},
	{"oracle-BF", "true peak, least free memory first", "best-fit", "oracle", &v2, nil},
	{"oracle-MAGM", "true peak, most available memory first", "magm", "oracle", &v2, nil},
	{"oracle-LUG", "true peak, least utilized first", "lug", "oracle", &v2, nil},
	{"OR-RR", "only recovery: the next GPU in a ring, no memory filter, no gate", "round-robin", "none", &v2, noCap},
	{"OR-MAGM", "only recovery: 5 GiB free, most available memory first", "magm", "none", &v2, minFree(5 * units.GiB)},
	{"OR-LUG", "only recovery: 5 GiB free, least utilized first", "lug", "none", &v2, minFree(5 * units.GiB)},
},
	estimated(&v2, "EST-MAGM", "magm", nil, "none", "horus", "faketensor", "gpumemnet"),
	estimated(&v2, "EST-LUG", "lug", nil, "none", "horus", "faketensor", "gpumemnet"),
	[]Preset{
		{"v1/exclusive", "one task per GPU", "exclusive", "none", &v1, func(o *mapper.Options) { noCap(o); o.Interval = 35 * time.Second }},
		{"v1/oracle-first-fit", "true peak, lowest index that fits", "first-fit", "oracle", &v1, collocatesRecovery},
		{"v1/oracle-best-fit", "true peak and 500 MiB, least free memory first", "best-fit", "oracle", &v1, func(o *mapper.Options) {
			collocatesRecovery(o)
			o.Margin = 500 * units.MiB
		}},
		{"v1/oracle-most-GMem-available", "true peak, most free memory first", "magm", "oracle", &v1, nil},
		{"v1/oracle-least_GPU_utiltized", "true peak, least utilized first", "lug", "oracle", &v1, nil},
	},
	estimated(&v1, "estimate-most-GMem-available", "magm", func(o *mapper.Options) { o.Margin, o.SMACTCap = 0, 0 }, "horus", "faketensor", "gpumemnet"),
	[]Preset{
		{"v1/most-GMem-available-RR", "2000 MiB free, most free memory first", "magm", "none", &v1, minFree(2000 * units.MiB)},
		{"v1/least_GPU_utilized-RR", "2000 MiB free, least utilized first", "lug", "none", &v1, minFree(2000 * units.MiB)},
		{"v1/round-robin", "the next GPU in a ring, no filter, no cap", "round-robin", "none", &v1, noCap},
		{"v1/least_utilized_GPU", "12000 MiB free, least utilized first", "lug", "none", &v1, minFree(12000 * units.MiB)},

		{"AEGIS/oracle-MAGM", "true peak, most available memory first, no gate", "magm", "oracle", &aegis, noCap},
		{"AEGIS/OR-MAGM", "only recovery: 5 GiB free, most available memory first", "magm", "none", &aegis, minFree(5 * units.GiB)},
		{"AEGIS/OR-MAGM-no-thresholds", "the same without the gate", "magm", "none", &aegis, both(minFree(5*units.GiB), noCap)},
		{"AEGIS/OR-MAGM-staged", "OR-MAGM with the later, staged recovery", "magm", "none", &aegis, both(minFree(5*units.GiB), staged)},
		{"AEGIS/OR-LUG", "only recovery: 5 GiB free, least utilized first", "lug", "none", &aegis, minFree(5 * units.GiB)},
		{"AEGIS/OR-LUG-no-thresholds", "the same without the gate", "lug", "none", &aegis, both(minFree(5*units.GiB), noCap)},
		{"AEGIS/OR-RR", "only recovery: the next GPU in a ring", "round-robin", "none", &aegis, noCap},
	},
	estimated(&aegis, "EST-MAGM", "magm", nil, "horus", "faketensor", "gpumemnet"),
	[]Preset{
		{"AEGIS/Horus", "expected GPU utilizations sum to at most 100 %, lowest sum first", "horus", "horus", &aegis, noCap},
		{"AEGIS/Lucid", "two tasks, sharing scores sum to at most 2, peaks within all but 2048 MiB", "lucid", "oracle", &aegis, func(o *mapper.Options) {
			noCap(o)
			o.MaxTasks, o.Booking, o.Margin = 2, mapper.BookGrants, 1536*units.MiB // beside the headroom of 512
		}},
	},
	ablations[1:], // the first is the policy itself
	without("catalogue", []ingredient{
		{"/make-way", "running tasks are suspended for urgent ones, with --suspend", func(o *mapper.Options) { o.MakeWay = true }},
	}),
	newByEstimator,
)

func noCap(o *mapper.Options) { o.SMACTCap, o.SMOCCCap, o.DRAMACap = 0, 0, 0 }

func staged(o *mapper.Options) { o.Recovery = mapper.RecoverStaged }

func minFree(b units.Bytes) func(*mapper.Options) {
	return func(o *mapper.Options) { o.MinFree, o.Margin = b, 0 }
}

func both(a, b func(*mapper.Options)) func(*mapper.Options) {
	return func(o *mapper.Options) { a(o); b(o) }
}

// collocatesRecovery: v1's first-fit and best-fit also place recovered tasks
// beside others.
func collocatesRecovery(o *mapper.Options) { o.Recovery = mapper.RecoverLadder }

// Presets are all of them, in the order in which they are listed.
func Presets() []Preset { return slices.Clone(presets) }

// Families are what the published presets have in common; those of policy carma
// have its defaults.
func Families() []Family { return []Family{v2, v1, aegis} }

// estimated are the presets of one policy by estimator.
func estimated(f *Family, name, policy string, change func(*mapper.Options), methods ...string) []Preset {
	if f != &v2 {
		name = f.Name + "/" + name
	}
	order := map[string]string{"magm": "most available memory first", "lug": "least utilized first"}[policy]
	var list []Preset
	for _, method := range methods {
		p := Preset{name + ":" + method, "estimate of " + method + ", " + order, policy, method, f, change}
		if method == "none" { // what the original makes of estimator None
			p.Doc, p.estimator = "true peak, as the original without estimator; "+order, "oracle"
		}
		list = append(list, p)
	}
	return list
}

// Row is the preset as a line of a table.
func (p *Preset) Row() Row {
	o := p.family.Rules
	o.Policy = p.policy
	if p.change != nil {
		p.change(&o)
	}
	return Row{Name: p.Name, Label: p.Name, Estimator: p.estimator, Preset: true, Options: o, Score: p.family.Score}
}

// PresetNames are the names of [Presets].
func PresetNames() []string {
	names := make([]string, len(presets))
	for i := range presets {
		names[i] = presets[i].Name
	}
	return names
}

// presetNamed finds a preset, whatever the case; those of v2 also by v2/NAME.
func presetNamed(name string) (*Preset, bool) {
	name = strings.TrimPrefix(strings.ToLower(name), "v2/")
	for i := range presets {
		if strings.ToLower(presets[i].Name) == name {
			return &presets[i], true
		}
	}
	return nil, false
}

// mustPreset is the row of a preset that is in the table.
func mustPreset(name string) Row {
	p, ok := presetNamed(name)
	if !ok {
		panic("no preset " + name) // our own bug
	}
	return p.Row()
}
