package sim

import (
	"reflect"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
)

// notSimulated lists the fields of samples that the simulator leaves zero: it has no
// faults, and no processes beside the tasks.
var notSimulated = map[string]bool{"Fault": true, "UntilReset": true, "FromDriver": true, "OtherProcesses": true}

// TestSampleHasEveryField checks that the simulator's samples have each field of the monitor's
// samples.
func TestSampleHasEveryField(t *testing.T) {
	of, seen := reflect.TypeFor[model.GPUSample](), map[string]bool{}
	_, err := Run(Config{
		Options: mapper.DefaultsOf("magm"), Coarse: true,
		GPUs: []GPU{{ID: "a", Model: "A", Memory: 24 * units.GiB, IdlePower: 20, PeakPower: 350, Speed: 1}},
		Observe: func(_ *mapper.State, ev model.Event, _ []model.Decision) {
			if ev, ok := ev.(model.Sampled); ok {
				for _, g := range ev.GPUs {
					for i := range of.NumField() {
						seen[of.Field(i).Name] = seen[of.Field(i).Name] || !reflect.ValueOf(g).Field(i).IsZero()
					}
				}
			}
		},
	}, []Task{{Name: "a", GPUs: 1, SoloTime: 10 * time.Minute, Estimate: model.Estimate{Memory: 2 * units.GiB}, Memory: []units.Bytes{2 * units.GiB}, Loads: []Load{{SMACT: 0.5, SMOCC: 0.3, DRAMA: 0.2}}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range of.NumField() {
		if name := of.Field(i).Name; seen[name] == notSimulated[name] {
			t.Errorf("samples have GPUSample.%s: %v; fill it in device.sample, or say in notSimulated that it is always zero", name, seen[name])
		}
	}
}
