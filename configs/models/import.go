package models

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxModules bounds what a summary lists.
const maxModules = 100_000

// Origins of imported configurations.
const (
	FromTorchsummary = "torchsummary"
	FromTorchinfo    = "torchinfo"
	FromTree         = "module-tree"
	FromONNX         = "onnx"
)

// ImportFile imports a file; see [Import].
func ImportFile(path string, o Overrides) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Import(path, f, o)
}

// Import makes a configuration of what a file holds: a configuration, the
// text that torchsummary, torchinfo or pytorch-model-summary print, or a printed
// module tree. Name is the file's, for messages and for the
// model's name. The sizes in o are for files that do not tell them.
//
// What a summary does not tell is inferred where the numbers prove it, else
// assumed; Warnings say what was. The result is valid.
func Import(name string, r io.Reader, o Overrides) (*Config, error) {
	c, err := load(name, r, o)
	if err != nil {
		return nil, in(name, err)
	}
	return c, nil
}

func load(name string, r io.Reader, o Overrides) (*Config, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	start, err := b.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	if len(start) == 0 {
		return nil, &Error{What: "empty; give a model's configuration or summary"}
	}
	text, err := all(b)
	if err != nil {
		return nil, err
	}
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' {
		c, err := parse(text)
		if err != nil {
			return nil, err
		}
		return c.With(o)
	}
	c, err := importText(string(text), o)
	return finish(c, err, name, o)
}

// importText recognises a summary by its table's head, or its first module.
func importText(text string, o Overrides) (*Config, error) {
	if n := strings.Count(text, "\n"); n > maxModules {
		return nil, &Error{What: fmt.Sprintf("%d lines; a summary has at most %d", n, maxModules)}
	}
	lines := strings.Split(strings.ReplaceAll(text, "\r", ""), "\n")
	for i, line := range lines {
		head := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(head, "Layer (type") && (strings.Contains(head, "depth-idx") || strings.Contains(head, ":depth")):
			return readTorchinfo(lines, i)
		case strings.HasPrefix(head, "Layer (type)") && strings.Contains(head, "Param #"):
			return readTorchsummary(lines, i)
		}
	}
	for i, line := range lines {
		if treeStart(line) {
			return readTree(lines, i, o)
		}
	}
	return nil, &Error{Line: 1, What: "neither a configuration, nor a summary of torchsummary or torchinfo, nor a printed module tree, nor an ONNX file"}
}

// start is an assembly of an imported model.
func start(origin string) *assembly {
	return &assembly{c: &Config{Schema: Schema, Origin: origin, Train: Train{Batch: 1}}, unknown: map[string]int{}}
}

// done says what the rows did not tell.
func (a *assembly) done() (*Config, error) {
	if len(a.c.Layers) == 0 {
		return nil, &Error{What: "no layer found; the summary is empty or cut off"}
	}
	a.warn("connections between layers are not in the summary: taken as a chain, branches where parameters or shapes prove them")
	if a.hidden > 0 {
		a.warn("%d operations between the listed modules were added: concatenations, scalings, attention", a.hidden)
	}
	if a.guessed > 0 {
		a.warn("%d convolutions have a kernel that their parameters do not tell", a.guessed)
	}
	for i, class := range slices.Sorted(maps.Keys(a.unknown)) {
		if i == 8 {
			a.warn("and %d more classes are unknown", len(a.unknown)-i)
			break
		}
		a.warn("%s is unknown or holds modules that are not listed (%d times): kept as other", clip(class), a.unknown[class])
	}
	a.c.Family = familyOf(a.c.Layers, a.detector)
	return a.c, nil
}

// finish names, changes and checks an imported configuration.
func finish(c *Config, err error, name string, o Overrides) (*Config, error) {
	if err != nil {
		return nil, err
	}
	if c.Name == "" {
		base := filepath.Base(name)
		if c.Name = strings.TrimSuffix(base, filepath.Ext(base)); c.Name == "" {
			c.Name = base
		}
	}
	told := o
	if c.Origin != FromTorchsummary && c.Origin != FromTorchinfo {
		told.Image, told.Sequence = 0, 0
	}
	if err := told.fixed(c.Name); err != nil {
		return nil, err
	}
	c.Name = strings.ToValidUTF8(c.Name, "?")
	for i := range c.Layers {
		c.Layers[i].Name = strings.ToValidUTF8(c.Layers[i].Name, "?")
	}
	c.Train = o.train(c.Train)
	c.Normalize()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, nil
}
