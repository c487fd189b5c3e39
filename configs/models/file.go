package models

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Read reads a configuration; name is the file's, for messages. It refuses unknown,
// missing and duplicate fields, values of another type, and everything that
// [Config.Validate] refuses. An error in the text is an [*Error] with the line and the
// field.
func Read(name string, r io.Reader) (*Config, error) {
	data, err := all(r)
	if err != nil {
		return nil, in(name, err)
	}
	c, err := parse(data)
	if err != nil {
		return nil, in(name, err)
	}
	return c, nil
}

// all reads the whole text; more than MaxFile bytes are an error.
func all(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	if err == nil && len(data) > MaxFile {
		err = &Error{What: fmt.Sprintf("larger than %d MiB; no configuration or summary is", MaxFile>>20)}
	}
	return data, err
}

func parse(data []byte) (*Config, error) {
	if err := check(data); err != nil {
		return nil, err
	}
	c := new(Config)
	if err := json.Unmarshal(data, c); err != nil {
		return nil, &Error{What: err.Error()} // check has accepted it, so this is a bug of carma
	}
	c.Normalize()
	err := c.Validate()
	var e *Error
	if errors.As(err, &e) {
		e.Line = lineOf(data, e.Field)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Write writes c, one line per layer. It refuses what [Config.Validate] refuses.
func (c *Config) Write(w io.Writer) error {
	if err := c.Validate(); err != nil {
		return err
	}
	head := *c
	layers := head.Layers
	head.Layers = []Layer{}
	head.Inputs = append([]Input(nil), c.Inputs...)
	for i := range head.Inputs {
		head.Inputs[i].Shape = some(head.Inputs[i].Shape)
	}
	text, err := marshal(head)
	if err != nil {
		return err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return err
	}
	const empty = `"layers": []`
	before, after, _ := bytes.Cut(indented.Bytes(), []byte("\n  "+empty))
	b := bufio.NewWriter(w)
	b.Write(before)
	b.WriteString("\n  \"layers\": [\n")
	for i, l := range layers {
		l.Out = some(l.Out)
		text, err := marshal(l)
		if err != nil {
			return err
		}
		b.WriteString("    ")
		b.Write(text)
		if i < len(layers)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("  ]")
	b.Write(after)
	b.WriteByte('\n')
	return b.Flush()
}

// some returns a list that is written as [] if it is empty.
func some(list []int64) []int64 {
	if list == nil {
		return []int64{}
	}
	return list
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
