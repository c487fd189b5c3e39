package api

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"carma/configs/nearest"
	"carma/mapper/units"
)

// A Field is a field of [Submit] that one text can say: a flag of carma run, a
// key of task files and of x-carma in Compose files, and, where Label is set, a
// label of images. All of them are found here; a field is added by adding it to
// Submit with its tags:
//
//   - help: one line about it for people. Without this tag it is no Field.
//   - letter: the short form of its flag.
//   - value: what the value is called in help, if not after its type.
//   - name: its name, if not that of its JSON with dashes.
//   - unit: how its text is read where the type does not say: memory,
//     parameters or shape.
//   - enum: the words that can be given, and words, if the API says more about
//     others than that.
//   - least: the smallest whole number, if not 1.
//   - label: "true" if a label carma.NAME of the image may give it.
type Field struct {
	Name string
	Help string
	// Unit stands for the value in a line of help: memory, time, N, word ...;
	// empty where there is none to be given.
	Unit  string
	Words []string // that can be given; nil: any
	Label string   // of images; empty: none
	// Letter is a flag's short form; empty: none.
	Letter string

	index int // in Submit
	parse func(text string) (any, error)
}

// fields are made once; their order is that of Submit.
var fields = findFields()

// Fields are the fields that one text can say, in the order of [Submit].
func Fields() []Field { return slices.Clone(fields) }

// FieldNamed finds a field.
func FieldNamed(name string) (Field, bool) {
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return fields[i], true
}

// Set reads a text into the field. The error quotes the text and gives the
// nearest that can be given, or an example; it does not name the field.
func (f *Field) Set(s *Submit, text string) error {
	v, err := f.parse(text)
	if err != nil {
		return err
	}
	to := f.of(s)
	to.Set(reflect.ValueOf(v).Convert(to.Type()))
	return nil
}

// Given reports whether the field has been set.
func (f *Field) Given(s *Submit) bool { return !f.of(s).IsZero() }

// Old reports whether the field leaves no choice: it is there so that files of
// older versions can be read, and help does not name it.
func (f *Field) Old() bool { return len(f.Words) == 1 }

// Yes reports whether the field is one that is on or off.
func (f *Field) Yes() bool { return f.Unit == "" }

func (f *Field) of(s *Submit) reflect.Value { return reflect.ValueOf(s).Elem().Field(f.index) }

func findFields() (all []Field) {
	t := reflect.TypeFor[Submit]()
	for i := range t.NumField() {
		tags := t.Field(i).Tag
		help, ok := tags.Lookup("help")
		if !ok {
			continue
		}
		inJSON, _, _ := strings.Cut(tags.Get("json"), ",")
		f := Field{Name: strings.ReplaceAll(inJSON, "_", "-"), Help: help, Letter: tags.Get("letter"), index: i}
		if name := tags.Get("name"); name != "" {
			f.Name = name
		}
		if words := cmp.Or(tags.Get("words"), tags.Get("enum")); words != "" {
			f.Words = strings.Split(words, ",")
		}
		if tags.Get("label") == "true" {
			f.Label = "carma." + f.Name
		}
		f.Unit, f.parse = reader(t.Field(i).Type, tags.Get("unit"), f.Words, tags.Get("least"))
		f.Unit = cmp.Or(tags.Get("value"), f.Unit)
		all = append(all, f)
	}
	return all
}

// reader is how a text becomes a value of a type, and what the value is called.
func reader(t reflect.Type, unit string, words []string, least string) (called string, parse func(string) (any, error)) {
	switch {
	case words != nil:
		return "word", as(func(s string) (string, error) { return s, nearest.OneOf(s, words) })
	case unit == "memory":
		return unit, as(units.ParseMemory)
	case unit == "parameters":
		return "N", as(units.ParseParameters)
	case unit == "shape":
		return unit, as(units.ParseShape)
	case t == reflect.TypeFor[time.Duration]():
		return "time", as(units.ParseSpan)
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		from, err := strconv.ParseInt(cmp.Or(least, "1"), 10, 64)
		if err != nil {
			panic(err)
		}
		return "N", as(func(s string) (int64, error) { return units.ParseCount(s, from) })
	case reflect.Float64:
		return "processors", as(units.ParseProcessors)
	case reflect.Bool:
		return "", as(yes)
	case reflect.String:
		return "text", as(text)
	}
	panic(fmt.Sprintf("a field of type %s that no text can say", t)) // seen by every test
}

func as[T any](parse func(string) (T, error)) func(string) (any, error) {
	return func(s string) (any, error) { return parse(s) }
}

func text(s string) (string, error) { return s, nil }

func yes(s string) (bool, error) {
	if s != "true" && s != "false" {
		return false, fmt.Errorf("%q is not true or false", s)
	}
	return s == "true", nil
}
