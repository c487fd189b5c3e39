package study

import "slices"

// byEstimator is the name of the group of presets that are the same but for
// the estimator: CARMA's magm of v2, then policy carma.
const byEstimator = "estimators"

// newByEstimator are those of the group that are in no other.
var newByEstimator = slices.Concat(
	[]Preset{{"EST-MAGM:nothing", "no estimate, so only the margin of 2 GiB has to be free; most available memory first", "magm", "none", &v2, nil}},
	estimated(&v2, "EST-MAGM", "magm", nil, computedNames()...),
	carmaUnder("carma", "oracle", "horus", "faketensor", "none"),
	carmaUnder(computedNames()[1:]...),
)

// carmaUnder is policy carma under other estimators than the daemon's.
func carmaUnder(estimators ...string) []Preset {
	var list []Preset
	for _, name := range estimators {
		list = append(list, Preset{"carma:" + name, "policy carma, estimate of " + name, "carma", name, &carmaRules, nil})
	}
	return list
}

// byEstimatorNames are the presets of the group: the oracle, carma's own, the
// published estimates, no estimate, and the other computed ones.
func byEstimatorNames() []string {
	names := []string{"oracle-MAGM", "EST-MAGM:carma", "EST-MAGM:horus", "EST-MAGM:faketensor", "EST-MAGM:gpumemnet", "EST-MAGM:nothing"}
	for _, e := range computedNames()[1:] {
		names = append(names, "EST-MAGM:"+e)
	}
	for _, e := range slices.Concat([]string{"oracle", "carma", "horus", "faketensor", "gpumemnet", "none"}, computedNames()[1:]) {
		names = append(names, "carma:"+e)
	}
	return names
}
