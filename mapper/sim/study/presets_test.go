package study

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/sim"
)

// TestPresets checks that each preset is valid, known by its name in any case, and
// documented, and that groups have presets, one for each computed estimator.
func TestPresets(t *testing.T) {
	doc, err := os.ReadFile("../../../test/lab/studies.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i := range known().Presets {
		p := &known().Presets[i]
		r := p.Row()
		if err := mapper.Validate(r.Options); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if p.family().Name != "carma" && (r.Options.LookAhead != 1 || !r.Options.IdleFirst || r.Options.Order != model.OrderFIFO || r.Options.Learn) || !r.Preset {
			t.Errorf("%s is not strictly in order, idle first: %+v", p.Name, r.Options)
		}
		if !slices.Contains(Estimators, r.Estimator) {
			t.Errorf("%s: estimator %q", p.Name, r.Estimator)
		}
		if found, ok := presetNamed(strings.ToUpper(p.Name)); !ok || found != p || seen[strings.ToLower(p.Name)] {
			t.Errorf("%s is not found by its name", p.Name)
		}
		seen[strings.ToLower(p.Name)] = true
		name, _, _ := strings.Cut(p.Name, ":")
		if !strings.Contains(string(doc), "`"+name) {
			t.Errorf("%s is not in test/lab/studies.md", p.Name)
		}
	}
	for name, group := range known().Groups {
		for _, p := range group {
			if p != "carma" && !seen[strings.ToLower(p)] {
				t.Errorf("group %s: no preset %s", name, p)
			}
		}
	}
	for _, e := range computedNames() {
		for _, policy := range []string{"EST-MAGM", "carma"} {
			if !slices.Contains(known().Groups["estimators"], policy+":"+e) {
				t.Errorf("no %s:%s in the group estimators", policy, e)
			}
		}
	}
}

func TestPresetOptions(t *testing.T) {
	original := model.Options{
		Booking: model.BookSamples, IdleFirst: true, Order: model.OrderFIFO, LookAhead: 1,
		Headroom: 512 * units.MiB, WarmUp: 30 * time.Second, Interval: time.Second,
		Attempts: 4, BlamelessRetries: 8, Backoff: 10 * time.Second,
	}
	for name, c := range map[string]struct {
		estimator string
		score     sim.Score
		change    func(*model.Options)
	}{
		"Exclusive": {"none", sim.ScoreRisk, func(o *model.Options) {
			o.Policy, o.Margin, o.Interval, o.Recovery = "exclusive", 2*units.GiB, 0, model.RecoverOriginal
		}},
		"or-magm": {"none", sim.ScoreRisk, func(o *model.Options) {
			o.Policy, o.MinFree, o.Recovery = "magm", 5*units.GiB, model.RecoverOriginal
			o.SMACTCap, o.SMOCCCap, o.DRAMACap = 0.80, 0.45, 0.40
		}},
		"EST-LUG:GPUMemNet": {"gpumemnet", sim.ScoreRisk, func(o *model.Options) {
			o.Policy, o.Margin, o.Recovery = "lug", 2*units.GiB, model.RecoverOriginal
			o.SMACTCap, o.SMOCCCap, o.DRAMACap = 0.80, 0.45, 0.40
		}},
		"v1/oracle-best-fit": {"oracle", sim.ScoreMean, func(o *model.Options) {
			o.Policy, o.Headroom, o.Margin, o.Recovery = "best-fit", 0, 500*units.MiB, model.RecoverLadder
			o.SMACTCap, o.WarmUp, o.Interval = 0.80, 0, 65*time.Second
		}},
		"AEGIS/OR-LUG-no-thresholds": {"none", sim.ScoreRisk, func(o *model.Options) {
			o.Policy, o.MinFree, o.Recovery = "lug", 5*units.GiB, model.RecoverOriginal
		}},
		"AEGIS/EST-MAGM:horus": {"horus", sim.ScoreRisk, func(o *model.Options) {
			o.Policy, o.Margin, o.Recovery = "magm", 2*units.GiB, model.RecoverOriginal
			o.SMACTCap, o.SMOCCCap, o.DRAMACap = 0.65, 0.35, 0.50
		}},
	} {
		want := original
		c.change(&want)
		if got := mustPreset(name); !reflect.DeepEqual(got.Options, want) || got.Estimator != c.estimator || got.Score != c.score {
			t.Errorf("%s: estimator %s, score %s\ngot  %+v\nwant %+v", name, got.Estimator, got.Score, got.Options, want)
		}
	}
}
