package model

import (
	"go/ast"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestEventRoundTrip checks that every event with any content can be stored in the journal and
// read back, and that eventDecoders has all events.
func TestEventRoundTrip(t *testing.T) {
	types := eventTypes(t)
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.SampledFrom(types).Draw(t, "type")
		value := reflect.New(of).Elem()
		fill(t, value, 0)
		ev := value.Interface().(Event)
		kind, body, err := EncodeEvent(ev)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeEvent(kind, body)
		if err != nil || !reflect.DeepEqual(got, ev) || EventTime(got) != EventTime(ev) {
			t.Fatalf("%#v came back as %#v, %v", ev, got, err)
		}
	})
}

// eventTypes returns the types in eventDecoders, and checks that the package declares no
// others.
func eventTypes(t *testing.T) []reflect.Type {
	t.Helper()
	var types []reflect.Type
	var known, declared []string
	for kind, decode := range EventDecoders {
		ev, err := decode([]byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind() != kind {
			t.Errorf("events of kind %s are read as %s", kind, ev.Kind())
		}
		types = append(types, reflect.TypeOf(ev))
		known = append(known, reflect.TypeOf(ev).Name())
	}
	files, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == "Kind" {
				declared = append(declared, fn.Recv.List[0].Type.(*ast.Ident).Name)
			}
		}
	}
	slices.Sort(known)
	slices.Sort(declared)
	if !slices.Equal(known, declared) {
		t.Fatalf("the package has the events %s; those that can be read are %s", declared, known)
	}
	slices.SortFunc(types, func(a, b reflect.Type) int { return slices.Compare([]byte(a.Name()), []byte(b.Name())) })
	return types
}

// TestEventsAbout checks that an event that names one task is about that task, so that
// its record is updated.
func TestEventsAbout(t *testing.T) {
	const id = TaskID(7)
	for _, of := range eventTypes(t) {
		v := reflect.New(of).Elem()
		named := false
		for _, path := range [][]string{{"Task"}, {"ID"}, {"Task", "ID"}} {
			f := v
			for _, name := range path {
				if f.Kind() == reflect.Struct {
					f = f.FieldByName(name)
				}
			}
			if f.IsValid() && f.Type() == reflect.TypeFor[TaskID]() {
				f.SetInt(int64(id))
				named = true
			}
		}
		if of == reflect.TypeFor[LaunchAccepted]() {
			named = false // nothing of it is in a record
		}
		if about := About(v.Interface().(Event)); named != (about == id) {
			t.Errorf("%s names a task: %v; it is about %d", of.Name(), named, about)
		}
	}
}

// fill draws a value of any type that events are made of.
func fill(t *rapid.T, v reflect.Value, depth int) {
	name := v.Type().String()
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, name))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, name))
	case reflect.String:
		v.SetString(rapid.String().Draw(t, name))
	case reflect.Slice:
		if n := rapid.IntRange(0, 2).Draw(t, name); n > 0 && depth < 4 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(t, v.Index(i), depth+1)
			}
		}
	case reflect.Pointer:
		if depth < 4 && rapid.Bool().Draw(t, name) {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i), depth+1)
			}
		}
	default:
		t.Fatalf("nobody says how to draw a %s", v.Type())
	}
}
