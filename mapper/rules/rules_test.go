package rules

import (
	"slices"
	"testing"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
)

func TestApply(t *testing.T) {
	o := mapper.DefaultsOf("magm")
	for _, s := range []string{"order=fair", "look-ahead=3", "min-free=5G", " slot = 2h ", "learn=true"} {
		if err := Apply(&o, s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	if o.Order != model.OrderFair || o.LookAhead != 3 || o.MinFree != 5*units.GiB || o.Slot.Hours() != 2 || !o.Learn {
		t.Errorf("%+v", o)
	}
	for setting, want := range map[string]string{
		"order":        `"order" is not KEY=VALUE; write for example order=fair`,
		"ordr=fair":    `unknown key "ordr"; nearest: order`,
		"socket=/x":    `unknown key "socket"; nearest: slot`,
		"policy=lug":   `unknown key "policy"; nearest: slot`,
		"slot=soon":    `slot: "soon" is not a time; write for example 30s, 90m, 2h, 1d or 2:00:00`,
		"look-ahead=0": `look-ahead is 0; 1 is strict first-come first-served`,
	} {
		before := o
		if err := Apply(&o, setting); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", setting, err, want)
		}
		if o.Order != before.Order || o.LookAhead != before.LookAhead || o.Slot != before.Slot {
			t.Errorf("%s changed something", setting)
		}
	}
	if names := Names(); slices.Contains(names, "gpus") || !slices.Contains(names, "quota-gpus") {
		t.Errorf("names are %v", names)
	}
}
