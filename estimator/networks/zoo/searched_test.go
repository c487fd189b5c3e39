package zoo

import (
	"testing"

	"carma/configs/models"
)

// torchvision states these numbers of parameters with its weights.
func TestSearchedNetworks(t *testing.T) {
	for name, want := range map[string]int64{
		"regnet_x_400mf": 5_495_976, "regnet_x_800mf": 7_259_656, "regnet_x_1_6gf": 9_190_136, "regnet_x_3_2gf": 15_296_552,
		"regnet_x_8gf": 39_572_648, "regnet_y_400mf": 4_344_144, "regnet_y_800mf": 6_432_512,
		"mnasnet0_5": 2_218_512, "mnasnet0_75": 3_170_208, "mnasnet1_0": 4_383_312, "mnasnet1_3": 6_282_256,
	} {
		if got := params(build(t, name, models.Overrides{})); got != want {
			t.Errorf("%s has %d parameters, want %d", name, got, want)
		}
	}
}
