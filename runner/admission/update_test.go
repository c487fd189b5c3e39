package admission

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"carma/runner/api"
)

// TestUpdateChangesNoProgram checks that no field of an update reaches a task's program,
// user, files or variables: administrators may update tasks of root.
func TestUpdateChangesNoProgram(t *testing.T) {
	before := api.Submit{Image: "a", Command: []string{"a"}, Env: []string{"A=1"}, GPUs: 1, Labels: map[string]string{"x": "1"}}
	u := api.Update{Labels: map[string]string{"y": "2"}, Unlabel: []string{"x"}, Network: json.RawMessage(`{}`), Train: map[string]string{"optimizer": "sgd"}}
	v := reflect.ValueOf(&u).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Pointer {
			f.Set(reflect.New(f.Type().Elem()))
			switch e := f.Elem(); e.Kind() {
			case reflect.String:
				e.SetString("new")
			case reflect.Int, reflect.Int64:
				e.SetInt(2)
			case reflect.Float64:
				e.SetFloat(2)
			case reflect.Bool:
				e.SetBool(true)
			case reflect.Slice:
				e.Set(reflect.MakeSlice(e.Type(), 1, 1))
			default:
				t.Fatalf("%s: a kind that this test does not set", v.Type().Field(i).Name)
			}
		}
	}
	harmless := []string{
		"Name", "Labels", "Priority", "Retries", "TimeLimit", "Slot", "HostMem", "CPUs", "HostReserve", "CPUsReserve", "GPUs", "Exclusive", "After", // the scheduler's
		"Mem", "EstModel", "Network", "Read", "BatchSize", "Train", // the estimate's
	}
	changed := 0
	was, is := reflect.ValueOf(before), reflect.ValueOf(updated(before, u))
	for i := range was.NumField() {
		name := was.Type().Field(i).Name
		if reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()) {
			continue
		}
		if changed++; !slices.Contains(harmless, name) {
			t.Errorf("an update changes %s: may an administrator change it in a task of root's?", name)
		}
	}
	if changed < 12 {
		t.Errorf("%d fields were changed", changed)
	}
}

// TestFitChange checks that a changed number of GPUs is refused if it contradicts the command.
func TestFitChange(t *testing.T) {
	rank2 := []string{"torchrun", "--nproc_per_node", "2", "t.py"}
	if err := fitChange(&api.Submit{Command: rank2, GPUs: 1}); err == nil || fitChange(&api.Submit{Command: rank2, GPUs: 2}) != nil {
		t.Errorf("an update: %v", err)
	}
}
