package mapper

import (
	"encoding/json"
	"reflect"
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
)

// TestSampleFieldsReachState: each field of a GPU's sample, and of a task's use in it,
// changes the state. A field that the state ignores is lost without an error.
func TestSampleFieldsReachState(t *testing.T) {
	stateWithout := func(without string) string {
		w := newWorld(t, plain(), 1)
		id := w.submit(units.GiB, nil)
		w.started(id)
		use := model.TaskUse{Task: id}
		setFields(t, reflect.ValueOf(&use).Elem(), without)
		in := model.GPUSample{ID: gpuID(0), Tasks: []model.TaskUse{use}}
		setFields(t, reflect.ValueOf(&in).Elem(), without)
		w.now++
		w.sample(in)
		b, err := json.Marshal(w.s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	all := stateWithout("")
	for _, of := range []reflect.Type{reflect.TypeFor[model.GPUSample](), reflect.TypeFor[model.TaskUse]()} {
		for i := range of.NumField() {
			field := of.Name() + "." + of.Field(i).Name
			if field == "GPUSample.ID" || field == "TaskUse.Task" {
				continue // these fields identify the GPU and the task
			}
			if stateWithout(field) == all {
				t.Errorf("the state is the same without %s; take the field over in observe.Observer.Sampled", field)
			}
		}
	}
}

// setFields sets each field of a struct that is still zero, and sets the field called without
// to zero. Field names are prefixed with the name of their type.
func setFields(t *testing.T, v reflect.Value, without string) {
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name
		switch {
		case name == without:
			f.SetZero()
		case !f.IsZero():
		case f.CanInt():
			f.SetInt(1 << 30)
		case f.CanFloat():
			f.SetFloat(0.5)
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		case f.Kind() == reflect.String:
			f.SetString("x")
		default:
			t.Fatalf("%s: give it a value in this test", name)
		}
	}
}
