package compose

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"carma/cmd/carma/taskfile"
	"carma/internal/lazyregexp"
)

// Error reports a fault in a Compose file, with its place.
type Error = taskfile.Error

// Limits of a file: its size in bytes, and its number of values after expansion of
// aliases.
const (
	MaxSize  = 1 << 20
	maxNodes = 100_000
	maxDepth = 64
)

// Read reads the content of a Compose file and refuses a file that is too large. name is
// used in errors.
func Read(name string, from io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(from, MaxSize+1))
	if err != nil {
		return nil, &Error{File: name, Text: err.Error()}
	}
	if len(content) > MaxSize {
		return nil, &Error{File: name, Text: fmt.Sprintf("larger than %d KiB, the most a Compose file may have here", MaxSize>>10)}
	}
	return content, nil
}

// document is a Compose file as a tree, with aliases and merge keys expanded. The nodes
// keep their lines.
type document struct {
	file string
	root *yaml.Node
	// others contains the files that are merged into the document, and the files that it
	// includes or extends; see place.
	others []string
	// unset lists the unset variables, with the places of their use.
	unset []*Error
}

func (d *document) errorf(line int, key, format string, args ...any) error {
	file, at := d.place(line)
	return &Error{File: file, Line: at, Key: key, Text: fmt.Sprintf(format, args...)}
}

var yamlLine = lazyregexp.New(`^(?:yaml: )?(?:line (\d+): )?`)

// parse parses a file into a tree.
func parse(file string, content []byte) (*document, error) {
	d := &document{file: file}
	if len(content) > MaxSize {
		return nil, d.errorf(0, "", "larger than %d KiB, the most a Compose file may have here", MaxSize>>10)
	}
	var doc, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	err := decoder.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0 {
		return nil, d.errorf(1, "", "empty; write for example services: {train: {image: my/training:1}}")
	}
	if err != nil {
		return nil, d.broken(err)
	}
	switch err := decoder.Decode(&more); {
	case err == nil:
		return nil, d.errorf(more.Line, "", "a second document begins here; a suite is one")
	case !errors.Is(err, io.EOF):
		return nil, d.broken(err)
	}
	f := flattener{document: d}
	if d.root, err = f.flat(doc.Content[0], 0); err != nil {
		return nil, err
	}
	if d.root.Kind != yaml.MappingNode {
		return nil, d.errorf(d.root.Line, "", "keys and values are missing; write for example services: {train: {image: my/training:1}}")
	}
	return d, nil
}

// parserError matches errors of the YAML library whose line numbers count from 0.
var parserError = lazyregexp.New(`did not find expected (',' or|key|'-' indicator|node content|<)`)

func (d *document) broken(err error) error {
	m := yamlLine().FindStringSubmatch(err.Error())
	line, _ := strconv.Atoi(m[1])
	if line > 0 && parserError().MatchString(err.Error()) {
		line++
	}
	return d.errorf(line, "", "not YAML: %s", err.Error()[len(m[0]):])
}

// endless matches YAML's infinities and "not a number".
var endless = lazyregexp.New(`(?i)^[-+]?\.(nan|inf)$`)

// flattener copies a tree and replaces aliases and merge keys by their content.
type flattener struct {
	*document
	count int
}

func (f *flattener) flat(n *yaml.Node, depth int) (*yaml.Node, error) {
	switch f.count++; {
	case f.count > maxNodes:
		return nil, f.errorf(n.Line, "", "more than %d values, aliases included", maxNodes)
	case depth > maxDepth:
		return nil, f.errorf(n.Line, "", "nested more than %d levels deep, or an alias inside its own anchor", maxDepth)
	case strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") && n.Tag != tagReset && n.Tag != tagOverride:
		return nil, f.errorf(n.Line, "", "the tag %s means nothing in a Compose file; %s and %s are for files that are merged", n.Tag, tagReset, tagOverride)
	case n.Tag == "!!float" && endless().MatchString(n.Value):
		return nil, f.errorf(n.Line, "", "%s is no number that means anything here", n.Value)
	}
	flat := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value, Style: n.Style, Line: n.Line, Column: n.Column}
	switch n.Kind {
	case yaml.AliasNode:
		return f.flat(n.Alias, depth+1)
	case yaml.SequenceNode:
		for _, item := range n.Content {
			c, err := f.flat(item, depth+1)
			if err != nil {
				return nil, err
			}
			flat.Content = append(flat.Content, c)
		}
	case yaml.MappingNode:
		return flat, f.mapping(flat, n, depth)
	}
	return flat, nil
}

// mapping copies keys and values. Merged keys come after the mapping's own keys.
func (f *flattener) mapping(flat, n *yaml.Node, depth int) error {
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			return f.errorf(k.Line, "", "a key that is not a word")
		}
		value, err := f.flat(v, depth+1)
		if err != nil {
			return err
		}
		if k.Tag == "!!merge" {
			if value.Kind == yaml.SequenceNode {
				merged = append(merged, value.Content...)
			} else {
				merged = append(merged, value)
			}
			continue
		}
		if _, twice := get(flat, k.Value); twice != nil {
			return f.errorf(k.Line, k.Value, "a second time")
		}
		key := *k
		key.Anchor = ""
		flat.Content = append(flat.Content, &key, value)
	}
	for _, m := range merged {
		if m.Kind != yaml.MappingNode {
			return f.errorf(m.Line, "<<", "only keys and values can be merged in")
		}
		for i := 0; i+1 < len(m.Content); i += 2 {
			if _, own := get(flat, m.Content[i].Value); own == nil {
				flat.Content = append(flat.Content, m.Content[i], m.Content[i+1])
			}
		}
	}
	return nil
}

// get returns a key of a mapping and its value, or nil if there is no such key.
func get(n *yaml.Node, name string) (key, value *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// find follows keys from the root as far as they exist. line is the line of the last key
// found.
func (d *document) find(path ...string) (value *yaml.Node, line int) {
	value, line = d.root, 0
	for _, name := range path {
		k, v := get(value, name)
		if v == nil {
			return nil, line
		}
		value, line = v, k.Line
	}
	return value, line
}

// services returns the names of the services, in the file's order.
func (d *document) services() []string {
	var names []string
	if all, _ := d.find("services"); all != nil && all.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(all.Content); i += 2 {
			names = append(names, all.Content[i].Value)
		}
	}
	return names
}
