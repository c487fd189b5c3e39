// Package jsonform compares JSON with the Go types that read it. It finds fields and
// values that are unknown to the types, which encoding/json ignores silently.
package jsonform

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Types describes the JSON of types beyond their declarations.
type Types struct {
	// Words lists the allowed values of string types. The empty string is always allowed.
	Words map[reflect.Type][]string
	// Forms maps a type with its own MarshalJSON or UnmarshalJSON to the type with the
	// fields of its JSON, which may be the type itself. Without an entry, any JSON is
	// allowed for such a type.
	Forms map[reflect.Type]reflect.Type

	mu    sync.Mutex
	known map[reflect.Type]*form
}

// form describes the JSON that a type may have. Nil allows anything.
type form struct {
	fields map[string]*form // of an object, or nil for any
	elem   *form            // of an array, or of an object without fields
	words  map[string]bool  // allowed texts, or nil for any
}

// Unknown is a field or a value that is unknown to the type of some JSON.
type Unknown struct {
	Path  string // of the field
	Value string // the value, or "" if the field is unknown
}

func (u *Unknown) Error() string {
	if u.Value != "" {
		return fmt.Sprintf("value %q of field %s", u.Value, u.Path)
	}
	return "field " + u.Path
}

// Check returns an [Unknown] if JSON has a field or a value that is unknown to its type.
// Check ignores other errors of the JSON.
func (t *Types) Check(of reflect.Type, body []byte) error {
	if len(body) == 0 {
		return nil
	}
	t.mu.Lock()
	f := t.form(of)
	t.mu.Unlock()
	c := checker{dec: json.NewDecoder(bytes.NewReader(body))}
	return c.value(f)
}

type checker struct {
	dec  *json.Decoder
	path []string
}

func (c *checker) value(f *form) error {
	if f == nil {
		var skipped json.RawMessage
		return c.dec.Decode(&skipped)
	}
	token, err := c.dec.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case string:
		if f.words != nil && token != "" && !f.words[token] {
			return &Unknown{Path: strings.Join(c.path, "."), Value: token}
		}
	case json.Delim:
		for c.dec.More() {
			if token == '{' {
				err = c.field(f)
			} else {
				err = c.value(f.elem)
			}
			if err != nil {
				return err
			}
		}
		_, err = c.dec.Token() // the end
	}
	return err
}

func (c *checker) field(f *form) error {
	name, err := c.dec.Token()
	if err != nil {
		return err
	}
	c.path = append(c.path, name.(string))
	of := f.elem
	if f.fields != nil {
		there := false
		if of, there = f.fields[name.(string)]; !there {
			return &Unknown{Path: strings.Join(c.path, ".")}
		}
	}
	err = c.value(of)
	if err == nil {
		c.path = c.path[:len(c.path)-1]
	}
	return err
}

// form returns the form of a type.
func (t *Types) form(of reflect.Type) *form {
	of = t.written(of)
	if of == nil {
		return nil
	}
	if f, ok := t.known[of]; ok {
		return f
	}
	if t.known == nil {
		t.known = map[reflect.Type]*form{}
	}
	f := &form{}
	t.known[of] = f
	switch words := t.Words[of]; {
	case words != nil:
		f.words = map[string]bool{}
		for _, w := range words {
			f.words[w] = true
		}
	case of.Kind() == reflect.Struct:
		f.fields = map[string]*form{}
		for name, field := range fields(of) {
			f.fields[name] = t.form(field)
		}
	case of.Kind() == reflect.Map, of.Kind() == reflect.Slice, of.Kind() == reflect.Array:
		f.elem = t.form(of.Elem())
	default:
		t.known[of] = nil
		return nil
	}
	return f
}

var (
	marshaler   = reflect.TypeFor[json.Marshaler]()
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textual     = reflect.TypeFor[encoding.TextMarshaler]()
)

// written returns the type that describes the JSON of a type, or nil if any JSON is
// allowed.
func (t *Types) written(of reflect.Type) reflect.Type {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if other, ok := t.Forms[of]; ok {
		return other
	}
	to := reflect.PointerTo(of)
	if to.Implements(marshaler) || to.Implements(unmarshaler) || to.Implements(textual) {
		return nil
	}
	if of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Uint8 {
		return nil // base64
	}
	return of
}

// fields returns the fields of a struct by their names in JSON, including the fields of
// embedded structs.
func fields(of reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			for n, field := range fields(f.Type) {
				if _, ok := all[n]; !ok {
					all[n] = field
				}
			}
		case !f.IsExported():
		case name == "":
			all[f.Name] = f.Type
		default:
			all[name] = f.Type
		}
	}
	return all
}

// Items lists the fields and values of some types and of all types in them:
// "package.Type.field" and "package.Type=value", in order.
func (t *Types) Items(roots ...reflect.Type) []string {
	found, seen := map[string]bool{}, map[reflect.Type]bool{}
	var visit func(of reflect.Type)
	visit = func(of reflect.Type) {
		if of = t.written(of); of == nil || seen[of] {
			return
		}
		seen[of] = true
		switch words := t.Words[of]; {
		case words != nil:
			for _, w := range words {
				found[of.String()+"="+w] = true
			}
		case of.Kind() == reflect.Struct:
			for name, field := range fields(of) {
				found[of.String()+"."+name] = true
				visit(field)
			}
		case of.Kind() == reflect.Map, of.Kind() == reflect.Slice, of.Kind() == reflect.Array:
			visit(of.Elem())
		}
	}
	for _, of := range roots {
		visit(of)
	}
	return slices.Sorted(maps.Keys(found))
}
