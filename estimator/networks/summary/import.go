package summary

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"carma/configs/models"
)

// maxModules is the most modules of a summary.
const maxModules = 100_000

// Import makes a configuration from the text of a summary. name is the file's,
// for messages and as the model's name. The sizes in o are for texts that lack
// them.
//
// Facts that a summary lacks are inferred if the numbers prove them; otherwise
// they are assumed, and Warnings say so. The result is valid. A fault in the text
// is a [*models.Error].
func Import(name, text string, o models.Overrides) (*models.Config, error) {
	c, err := read(text, o)
	c, err = finish(c, err, name, o)
	if e, ok := errors.AsType[*models.Error](err); ok {
		e.File = name
	}
	return c, err
}

// read recognizes a summary by the head of its table, or by its first module.
func read(text string, o models.Overrides) (*models.Config, error) {
	if n := strings.Count(text, "\n"); n > maxModules {
		return nil, &models.Error{What: fmt.Sprintf("%d lines; a summary has at most %d", n, maxModules)}
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
	return nil, &models.Error{Line: 1, What: "neither a configuration, nor a summary of torchsummary or torchinfo, nor a printed module tree, nor an ONNX file"}
}

// start begins the assembly of a model from this origin.
func start(origin string) *assembly {
	return &assembly{c: &models.Config{Schema: models.Schema, Origin: origin, Train: models.Train{Batch: 1}}, unknown: map[string]int{}}
}

// done completes the configuration and adds the warnings about what is missing in
// the text.
func (a *assembly) done() (*models.Config, error) {
	if len(a.c.Layers) == 0 {
		return nil, &models.Error{What: "no layer found; the summary is empty or cut off"}
	}
	a.warn("connections between layers are not in the summary: a chain is assumed, with branches if parameters or shapes prove them")
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
		a.warn("%s is unknown or holds modules that are not listed (%d times): kept as other", models.Clip(class), a.unknown[class])
	}
	if a.c.Family = models.FamilyOf(a.c.Layers); a.detector {
		a.c.Family = models.Detection
	}
	return a.c, nil
}

// finish names, changes and checks an imported configuration.
func finish(c *models.Config, err error, name string, o models.Overrides) (*models.Config, error) {
	if err != nil {
		return nil, err
	}
	if c.Name == "" {
		base := filepath.Base(name)
		if c.Name = strings.TrimSuffix(base, filepath.Ext(base)); c.Name == "" {
			c.Name = base
		}
	}
	if c.Origin != models.FromTorchsummary && c.Origin != models.FromTorchinfo {
		o.Image, o.Sequence = 0, 0 // they were used while the tree was read
	}
	changed, err := c.With(o)
	if err != nil {
		return nil, err
	}
	changed.Name = strings.ToValidUTF8(changed.Name, "?")
	for i := range changed.Layers {
		changed.Layers[i].Name = strings.ToValidUTF8(changed.Layers[i].Name, "?")
	}
	return changed, nil
}
