package runner

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"carma/mapper/model"
	"carma/runner/api"
)

// TestPhasesOfTheAPI: the document of the API names every phase of the core.
func TestPhasesOfTheAPI(t *testing.T) {
	field, _ := reflect.TypeFor[api.Task]().FieldByName("Phase")
	told := strings.Split(field.Tag.Get("enum"), ",")
	for _, p := range model.Phases {
		if !slices.Contains(told, string(p)) {
			t.Errorf("the phase %s is not in %v", p, told)
		}
	}
	if len(told) != len(model.Phases) {
		t.Errorf("%d phases are told, there are %d", len(told), len(model.Phases))
	}
}
