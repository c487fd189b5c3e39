package hf

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"carma/configs/models"
)

// MaxFile is the maximum size of a config.json in bytes.
const MaxFile = 1 << 20

// fields has the fields of a config.json. A value is checked when it is read. err is the
// error of the first invalid value.
type fields struct {
	values map[string]any
	err    error
	notes  []string           // for the configuration's warnings
	read   map[string]bool    // names of the fields that were read
	parts  map[string]*fields // the fields of nested objects
}

// value returns a field; ok is false if it does not exist.
func (f *fields) value(name string) (v any, ok bool) {
	if f.read == nil {
		f.read = map[string]bool{}
	}
	f.read[name] = true
	v, ok = f.values[name]
	return v, ok
}

// wrong returns an error about a field.
func wrong(field, format string, args ...any) error {
	return &models.Error{Field: field, What: fmt.Sprintf(format, args...)}
}

func (f *fields) fail(field, format string, args ...any) {
	if f.err == nil {
		f.err = wrong(field, format, args...)
	}
}

// parse reads a config.json.
func parse(data []byte) (*fields, error) {
	if len(data) > MaxFile {
		return nil, wrong("", "larger than 1 MiB; a config.json has some kilobytes")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	f := &fields{}
	if err := d.Decode(&f.values); err != nil {
		return nil, wrong("", "not JSON: %v", err)
	}
	if f.values == nil {
		return nil, wrong("", "null; a config.json is an object {...}")
	}
	return f, nil
}

// text returns a text field, or otherwise if the field is missing.
func (f *fields) text(name, otherwise string) string {
	v, ok := f.value(name)
	if !ok || v == nil {
		return otherwise
	}
	s, ok := v.(string)
	if !ok {
		f.fail(name, "it is a text")
	}
	return s
}

func (f *fields) flag(name string, otherwise bool) bool {
	v, ok := f.value(name)
	if !ok || v == nil {
		return otherwise
	}
	b, ok := v.(bool)
	if !ok {
		f.fail(name, "it is true or false")
	}
	return b
}

// positive reports whether a number is given and is not -1, which stands for none.
func (f *fields) positive(name string) bool {
	v, _ := f.value(name)
	n, ok := v.(json.Number)
	return f.given(name) && !(ok && n == "-1")
}

// has reports whether a word is in a list of words, or in a text of words with | between
// them.
func (f *fields) has(name, word string) bool {
	v, _ := f.value(name)
	if list, ok := v.([]any); ok {
		return slices.Contains(list, any(word))
	}
	return slices.Contains(strings.Split(f.text(name, ""), "|"), word)
}

// chance reports whether a probability is not 0.
func (f *fields) chance(name string, otherwise float64) bool {
	v, ok := f.value(name)
	if !ok || v == nil {
		return otherwise != 0
	}
	number, ok := v.(json.Number)
	x, err := number.Float64()
	if !ok || err != nil || x < 0 || x > 1 {
		f.fail(name, "it is a number from 0 to 1")
	}
	return x != 0
}

// most is the largest number that a field may have. Products of three such numbers do not
// overflow.
const most = 1 << 20

// whole returns an integer field, which must be at least 1.
func (f *fields) whole(name string, otherwise int64) int64 {
	n := f.orZero(name, otherwise)
	if n == 0 && f.err == nil {
		if f.given(name) {
			f.fail(name, "0; it is 1 to %d", most)
		} else {
			f.fail(name, "missing")
		}
	}
	return max(n, 1)
}

// orZero returns an integer field, which may be 0. null counts as missing.
func (f *fields) orZero(name string, otherwise int64) int64 {
	v, ok := f.value(name)
	if !ok || v == nil {
		return otherwise
	}
	number, ok := v.(json.Number)
	if !ok {
		f.fail(name, "it is a whole number")
		return 1
	}
	x, err := number.Float64()
	if err != nil || x != math.Trunc(x) || x < 0 || x > most {
		f.fail(name, "%s is no whole number from 0 to %d", models.Clip(number.String()), most)
		return 1
	}
	return int64(x)
}

// square returns the side of a square in pixels. The field is an integer of at least 1, or
// a list of height and width.
func (f *fields) square(name string, otherwise int64) int64 {
	v, _ := f.value(name)
	list, ok := v.([]any)
	if !ok {
		return f.whole(name, otherwise)
	}
	var sides []int64
	for _, v := range list[:min(len(list), 3)] {
		one := &fields{values: map[string]any{name: v}}
		sides = append(sides, one.whole(name, 0))
		f.err = cmp.Or(f.err, one.err)
	}
	if n := len(sides); n == 0 || n > 2 || sides[0] != sides[n-1] {
		f.fail(name, "it is one number, or a list of two equal ones: squares only are known here. Give a number with as many pixels")
		return 1
	}
	return sides[0]
}

// number returns a number field, which must be at least 0. null counts as missing.
func (f *fields) number(name string, otherwise float64) float64 {
	v, ok := f.value(name)
	if !ok || v == nil {
		return otherwise
	}
	number, _ := v.(json.Number)
	x, err := number.Float64()
	if err != nil || x < 0 {
		f.fail(name, "it is a number of at least 0")
		return otherwise
	}
	return x
}

// given reports whether a field exists and is not null.
func (f *fields) given(name string) bool {
	v, ok := f.value(name)
	return ok && v != nil
}

// part returns an object within the configuration, like text_config.
func (f *fields) part(name string) (*fields, bool) {
	v, ok := f.values[name].(map[string]any)
	part := f.parts[name]
	if part == nil {
		part = &fields{values: v}
		if f.parts == nil {
			f.parts = map[string]*fields{}
		}
		f.parts[name] = part
	}
	return part, ok
}

// Recognized reports whether a text is a config.json of the transformers library, or
// of the diffusers library.
func Recognized(text []byte) bool {
	var head struct {
		ModelType     any `json:"model_type"`
		Architectures any `json:"architectures"`
		Class         any `json:"_class_name"`
		Schema        any `json:"schema"`
		Layers        any `json:"layers"`
	}
	if len(text) > MaxFile || json.Unmarshal(text, &head) != nil {
		return false
	}
	return head.Schema == nil && head.Layers == nil && (head.ModelType != nil || head.Architectures != nil || head.Class != nil)
}

// Read makes the network of a config.json. name is for messages and people. An error
// is a [models.Error], or one of package zoo about o.
func Read(name string, text []byte, o models.Overrides) (*models.Config, error) {
	f, err := parse(text)
	if err != nil {
		return nil, err
	}
	return f.config(name, o)
}

func (f *fields) config(name string, o models.Overrides) (*models.Config, error) {
	if f.given("_class_name") {
		return f.diffusersModel(name, o)
	}
	kind := f.text("model_type", "")
	if f.err != nil {
		return nil, f.err
	}
	if inner, ok := f.part("text_config"); ok && inner.given("model_type") && kinds[kind] == nil {
		c, err := inner.config(name, o)
		if err == nil {
			c.Warnings = append(c.Warnings, "only the language model of "+models.Clip(kind)+" is counted: images and sound are not known here")
		}
		return c, err
	}
	build := kinds[kind]
	if build == nil {
		return nil, f.unknown(kind)
	}
	c, err := build(f, name, o)
	if f.err != nil {
		return nil, f.err
	}
	if err != nil {
		return nil, err
	}
	c.Origin = models.FromHF
	c.Warnings = append(c.Warnings, f.notes...)
	return c, nil
}

// Kinds lists the values of model_type that are known.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }
