package api

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"carma/configs/models"
	"carma/containers/option"
	"carma/internal/suggest"
	"carma/internal/units"
)

// A Field is a field of [Submit] that can be set from one text: a flag of carma run, a
// key of task files and of x-carma in Compose files and, if Label is set, a label of
// images. To add one, add it to Submit, or to
// [ContainerOptions] if docker run has it, with its tags:
//
//   - help: one line about it for people. Without this tag it is no Field.
//   - letter: the short form of its flag.
//   - value: the name of the value in help, if it differs from the type.
//   - name: its name, if not the field's JSON name with dashes.
//   - unit: the syntax of its text, if the type does not determine it: memory,
//     parameters, shape, GPUs, "time or 0", in which 0 is kept as
//     [Never], tasks, or a unit of [textSyntax].
//   - enum: the words that can be given, and words, if the API says more about
//     others than that.
//   - least: the smallest whole number, if not 1.
//   - label: "true" if a label carma.NAME of the image may give it.
//
// The settings of a training are Fields too; their table is in configs/models.
type Field struct {
	Name string
	Help string
	// Unit represents the value in a line of help: memory, time, N, word ... It is empty if
	// the field takes no value.
	Unit  string
	Words []string // the allowed words, or nil for any
	Label string   // its image label, or "" if it has none
	// Letter is a flag's short form, or "" if it has none.
	Letter string
	// List is set if each text is one entry of several.
	List bool

	index  []int           // index in Submit, see [reflect.Value.FieldByIndex]
	train  *models.Setting // setting in Submit.Train; nil for a field of Submit itself
	unit   string
	counts bool // a number of GPUs, which may be 0
	parse  func(text string) (any, error)
}

// fields is built once, in the order of Submit.
var fields = findFields()

// Fields returns the fields that can be set from one text, in the order of [Submit].
func Fields() []Field { return slices.Clone(fields) }

// FieldNamed finds a field.
func FieldNamed(name string) (Field, bool) {
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return fields[i], true
}

// Trains reports whether the field is a setting of a training.
func (f *Field) Trains() bool { return f.train != nil }

// Set parses a text into the field; for a list it adds an entry. The error quotes the
// text and contains the nearest possible value, or an example, but not the field's name.
func (f *Field) Set(s *Submit, text string) error {
	if f.train != nil {
		return f.setTraining(s, text)
	}
	if f.unit == "tasks" && strings.Trim(text, "+-0123456789") != "" {
		return setSharding(s, text)
	}
	v, err := f.parse(text)
	if err != nil {
		return err
	}
	to := f.of(s)
	if f.List {
		to.Set(reflect.ValueOf(append(slices.Clone(to.Interface().([]string)), v.(string))))
		return nil
	}
	to.Set(reflect.ValueOf(v).Convert(to.Type()))
	if f.counts {
		g, _ := ParseGPUs(text)
		s.NoGPU, s.GPUIDs = s.GPUs == 0, g.Devices // given, and 0 means none
	}
	return nil
}

// Clear removes the field's value.
func (f *Field) Clear(s *Submit) {
	if f.train != nil {
		s.Train = without(s.Train, f.train.Key())
		return
	}
	f.of(s).SetZero()
	if f.counts {
		s.NoGPU, s.GPUIDs = false, nil
	}
}

// Take copies the field's value from another submission.
func (f *Field) Take(s, from *Submit) {
	if f.train != nil {
		f.takeTraining(s, from)
		return
	}
	f.of(s).Set(f.of(from))
	if f.counts {
		s.NoGPU, s.GPUIDs = from.NoGPU, from.GPUIDs
	}
	if f.Name == "est-model" { // facts about the other model are dropped
		s.Network, s.Read = from.Network, nil
	}
}

// Given reports whether the field has been set.
func (f *Field) Given(s *Submit) bool {
	if f.train != nil {
		return s.Train[f.train.Key()] != ""
	}
	return !f.of(s).IsZero() || f.counts && s.NoGPU
}

// Old reports whether the field leaves no choice. Such a field exists only so that files
// of older versions can be read; help omits it.
func (f *Field) Old() bool { return len(f.Words) == 1 }

// Yes reports whether the field is a switch.
func (f *Field) Yes() bool { return f.Unit == "" }

func (f *Field) of(s *Submit) reflect.Value { return reflect.ValueOf(s).Elem().FieldByIndex(f.index) }

func findFields() (all []Field) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Submit]()) {
		tags := field.Tag
		if tags.Get("settings") != "" {
			all = append(all, trainingFields()...)
		}
		help, ok := tags.Lookup("help")
		if !ok {
			continue
		}
		f := Field{Name: option.Name(tags), Help: help, Letter: tags.Get("letter"), List: field.Type.Kind() == reflect.Slice, index: field.Index, unit: tags.Get("unit")}
		if words := cmp.Or(tags.Get("words"), tags.Get("enum")); words != "" {
			f.Words = strings.Split(words, ",")
		}
		if tags.Get("label") == "true" {
			f.Label = "carma." + f.Name
		}
		f.Unit, f.parse = reader(field.Type, tags.Get("unit"), f.Words, tags.Get("least"))
		f.Unit, f.counts = cmp.Or(tags.Get("value"), f.Unit), tags.Get("unit") == "GPUs"
		all = append(all, f)
	}
	return all
}

// reader returns the function that parses a text into a value of type t, and the value's
// name in help.
func reader(t reflect.Type, unit string, words []string, least string) (called string, parse func(string) (any, error)) {
	switch {
	case words != nil:
		return "word", as(func(s string) (string, error) { return s, suggest.OneOf(s, words) })
	case unit == "memory":
		return unit, as(units.ParseMemory)
	case unit == "parameters":
		return "N", as(units.ParseParameters)
	case unit == "shape":
		return unit, as(units.ParseShape)
	case unit == "tasks":
		return "N", as(func(s string) (int64, error) { return units.ParseCount(s, 1) })
	case unit == "GPUs":
		return "N", as(func(s string) (int64, error) { g, err := ParseGPUs(s); return g.Count, err })
	case unit == "time or 0":
		return "time", as(spanOrNever)
	case textSyntax(unit) != nil:
		return unit, as(textSyntax(unit))
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
	panic(fmt.Sprintf("a field of type %s that no text can say", t)) // every test would fail
}

func as[T any](parse func(string) (T, error)) func(string) (any, error) {
	return func(s string) (any, error) { return parse(s) }
}

func text(s string) (string, error) { return s, nil }

// Never is the time of an event that must not happen, where 0 means no choice.
const Never time.Duration = -1

// spanOrNever parses a time, or 0 for [Never].
func spanOrNever(s string) (time.Duration, error) {
	d, err := units.ParseTime(s)
	if err == nil && d == 0 {
		d = Never
	}
	return d, err
}

func yes(s string) (bool, error) {
	if s != "true" && s != "false" {
		return false, fmt.Errorf("%q is not true or false", s)
	}
	return s == "true", nil
}
