package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// check finds the first place at which a text does not have the form of a configuration,
// without checking values. encoding/json alone reports no line and no field, and accepts
// missing and duplicate fields.
func check(data []byte) error {
	w := &walker{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	w.dec.UseNumber()
	err := w.value(reflect.TypeFor[Config](), "")
	if err == nil {
		if _, more := w.dec.Token(); !errors.Is(more, io.EOF) {
			err = w.wrong("", "text after the end of the configuration; a file holds one")
		}
	}
	return err
}

// lineOf returns the line of a field in a text that check has passed. If the field is
// missing, it returns the line of the nearest field around it.
func lineOf(data []byte, field string) int {
	w := &walker{data: data, dec: json.NewDecoder(bytes.NewReader(data)), find: field, found: 1}
	w.dec.UseNumber()
	_ = w.value(reflect.TypeFor[Config](), "")
	return w.found
}

// walker reads a text along the fields of a type.
type walker struct {
	data  []byte
	dec   *json.Decoder
	find  string // the field to find
	found int    // its line
	at    int64  // offset up to which lines are counted
	line  int
}

// here returns the line of the last token.
func (w *walker) here() int {
	to := min(w.dec.InputOffset(), int64(len(w.data)))
	w.line += bytes.Count(w.data[w.at:to], []byte("\n"))
	w.at = to
	return w.line + 1
}

func (w *walker) wrong(field, format string, args ...any) error {
	e := wrong(field, format, args...)
	e.Line = w.here()
	return e
}

// token reads the next token, which belongs to field.
func (w *walker) token(field string) (json.Token, error) {
	t, err := w.dec.Token()
	if err == nil {
		return t, nil
	}
	var syntax *json.SyntaxError
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, w.wrong(field, "the text ends too early; the file is cut off or empty")
	}
	if errors.As(err, &syntax) {
		e := wrong(field, "not JSON: %s", syntax.Error())
		e.Line = bytes.Count(w.data[:max(0, min(syntax.Offset, int64(len(w.data))))], []byte("\n")) + 1
		return nil, e
	}
	return nil, w.wrong(field, "%s", err.Error())
}

// value reads one value of type t.
func (w *walker) value(t reflect.Type, field string) error {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	token, err := w.token(field)
	if err != nil {
		return err
	}
	if rest, around := strings.CutPrefix(w.find, field); around && (rest == "" || field == "" || rest[0] == '.' || rest[0] == '[') {
		w.found = w.here()
	}
	switch t.Kind() {
	case reflect.Struct:
		if token != json.Delim('{') {
			return w.wrong(field, "%s; it is an object {...}", said(token))
		}
		return w.object(t, field)
	case reflect.Slice:
		if token != json.Delim('[') {
			return w.wrong(field, "%s; it is a list [...]", said(token))
		}
		return w.list(t.Elem(), field)
	case reflect.String:
		if _, ok := token.(string); !ok {
			return w.wrong(field, "%s; it is a text", said(token))
		}
	case reflect.Bool:
		if _, ok := token.(bool); !ok {
			return w.wrong(field, "%s; it is true or false", said(token))
		}
	default:
		n, ok := token.(json.Number)
		if !ok {
			return w.wrong(field, "%s; it is a whole number", said(token))
		}
		if _, err := strconv.ParseInt(n.String(), 10, t.Bits()); err != nil {
			return w.wrong(field, "%s is not a whole number of 64 bits", Short(n.String()))
		}
	}
	return nil
}

// said formats a value for messages.
func said(token json.Token) string {
	switch v := token.(type) {
	case nil:
		return "null"
	case json.Delim:
		return map[json.Delim]string{'{': "an object", '[': "a list"}[v]
	case string:
		return "a text"
	case json.Number:
		return "a number"
	}
	return fmt.Sprint(token)
}

// list reads the rest of a list.
func (w *walker) list(t reflect.Type, field string) error {
	limit := MaxList
	if t == reflect.TypeFor[Layer]() {
		limit = MaxLayers
	}
	for i := 0; w.dec.More(); i++ {
		if i == limit {
			return w.wrong(field, "more than %d entries", limit)
		}
		if err := w.value(t, field+"["+strconv.Itoa(i)+"]"); err != nil {
			return err
		}
	}
	_, err := w.token(field)
	return err
}

// object reads the rest of an object.
func (w *walker) object(t reflect.Type, field string) error {
	shape := shapeOf(t)
	seen := uint64(0)
	start := w.here()
	for w.dec.More() {
		token, err := w.token(field)
		if err != nil {
			return err
		}
		key, ok := token.(string)
		if !ok {
			return w.wrong(field, "not JSON: a field has no name")
		}
		i, ok := shape.index[key]
		if !ok {
			return w.wrong(join(field, Clip(key)), "unknown field; %s", choose(key, shape.names))
		}
		if seen&(1<<i) != 0 {
			return w.wrong(join(field, key), "given twice; leave one out")
		}
		seen |= 1 << i
		if err := w.value(shape.types[i], join(field, key)); err != nil {
			return err
		}
	}
	if _, err := w.token(field); err != nil {
		return err
	}
	for i, name := range shape.names {
		if shape.required[i] && seen&(1<<i) == 0 {
			e := wrong(join(field, name), "missing; every %s has one", shape.what)
			e.Line = start
			return e
		}
	}
	return nil
}

func join(field, key string) string {
	if field == "" {
		return key
	}
	return field + "." + key
}

// fields contains the JSON fields of a struct.
type fields struct {
	what     string
	names    []string
	types    []reflect.Type
	required []bool
	index    map[string]int
}

var shapes sync.Map // maps reflect.Type to *fields

func shapeOf(t reflect.Type) *fields {
	if f, ok := shapes.Load(t); ok {
		return f.(*fields)
	}
	f := &fields{what: strings.ToLower(t.Name()), index: map[string]int{}}
	if t == reflect.TypeFor[Config]() {
		f.what = "configuration"
	}
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		f.index[name] = i
		f.names = append(f.names, name)
		f.types = append(f.types, t.Field(i).Type)
		f.required = append(f.required, options != "omitempty")
	}
	shapes.Store(t, f)
	return f
}
