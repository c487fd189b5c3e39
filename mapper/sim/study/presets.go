package study

import (
	"bytes"
	_ "embed"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/rules"
	"carma/mapper/sim"
)

// Preset is a policy of CARMA or AEGIS with all its settings: the mapper's options, the
// estimator and the monitor's score.
type Preset struct {
	Name, Doc, Policy, Estimator string
	Rules                        []string // KEY=VALUE, in addition to the family's
	// For, if not empty, makes the preset a template for presets, one for each of these
	// estimators.
	For []string
}

// Family is the common part of presets.
type Family struct {
	Name, Doc string
	Score     sim.Score
	Rules     []string // KEY=VALUE, in addition to strict
}

//go:embed presets.yaml
var presetsText []byte

// presetFile is the content of presets.yaml.
type presetFile struct {
	Families []Family
	Presets  []Preset
	Groups   map[string][]string // names of presets, used together by one --policy
}

// known contains the file's presets, with templates expanded.
var known = sync.OnceValue(func() presetFile {
	var f presetFile
	d := yaml.NewDecoder(bytes.NewReader(presetsText))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		panic("presets.yaml: " + err.Error()) // the file is embedded
	}
	var all []Preset
	for _, p := range f.Presets {
		if len(p.For) == 0 {
			all = append(all, p)
		}
		for _, e := range p.For {
			all = append(all, Preset{Name: strings.ReplaceAll(p.Name, "{}", e), Doc: strings.ReplaceAll(p.Doc, "{}", e), Policy: p.Policy, Estimator: e, Rules: p.Rules})
		}
	}
	f.Presets = all
	return f
})

// strict is first come, first served, without features that the originals lack: no
// learning, no shrinking.
var strict = model.Options{
	Booking: model.BookSamples, IdleFirst: true, Order: model.OrderFIFO, LookAhead: 1,
	Attempts: 4, BlamelessRetries: 8, Backoff: 10 * time.Second,
}

// Presets returns all presets, in listing order.
func Presets() []Preset { return slices.Clone(known().Presets) }

// Families returns the families of the published presets. Presets of policy carma use its
// defaults instead.
func Families() []Family { return slices.Clone(known().Families) }

// Options returns the options of the family under a policy.
func (f Family) Options(policy string) model.Options {
	o := strict
	if f.Name == "carma" {
		o = mapper.DefaultsOf("carma")
	}
	o.Policy = policy
	setRules(&o, f.Rules)
	return o
}

// setRules applies rules of the file; a test checks that they are valid.
func setRules(o *model.Options, list []string) {
	for _, rule := range list {
		if err := rules.Apply(o, rule); err != nil {
			panic("presets.yaml: " + err.Error())
		}
	}
}

// family returns the family whose name begins the preset's name.
func (p *Preset) family() Family {
	families := known().Families
	begin := p.Name[:strings.IndexAny(p.Name+":", "/:")]
	if begin == "carma" {
		return Family{Name: begin, Score: sim.ScoreMean}
	}
	return families[max(0, slices.IndexFunc(families, func(f Family) bool { return f.Name == begin }))]
}

// Row returns the preset as a row of a table.
func (p *Preset) Row() Row {
	f := p.family()
	o := f.Options(p.Policy)
	setRules(&o, p.Rules)
	return Row{Name: p.Name, Label: p.Name, Estimator: p.Estimator, Preset: true, Options: o, Score: f.Score}
}

// PresetNames returns the names of [Presets].
func PresetNames() []string {
	var names []string
	for _, p := range known().Presets {
		names = append(names, p.Name)
	}
	return names
}

// presetNamed finds a preset, ignoring case; presets of v2 also by v2/NAME.
func presetNamed(name string) (*Preset, bool) {
	name = strings.TrimPrefix(strings.ToLower(name), "v2/")
	all := known().Presets
	i := slices.IndexFunc(all, func(p Preset) bool { return strings.ToLower(p.Name) == name })
	if i < 0 {
		return nil, false
	}
	return &all[i], true
}

// mustPreset returns the row of a preset that is in the table.
func mustPreset(name string) Row {
	p, ok := presetNamed(name)
	if !ok {
		panic("no preset " + name) // a bug of carma
	}
	return p.Row()
}
