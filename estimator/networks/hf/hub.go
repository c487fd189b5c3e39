package hf

import (
	_ "embed" // the table
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"carma/configs/models"
	"carma/estimator/networks/zoo"
)

// hubJSON has the configurations of models of the hub: the fields that matter here,
// and the number of parameters that the model's page shows.
//
//go:embed hub.json
var hubJSON []byte

// othersJSON has the configurations of models that are not decoders.
// estimator/training/transformers_params.py counts the parameters of the class in
// architectures.
//
//go:embed hub_others.json
var othersJSON []byte

type hubModel struct {
	Names  []string        `json:"names"`
	Params int64           `json:"params"`
	Config json.RawMessage `json:"config"`
	// Catalogue is the network of the catalogue that the model is, instead of Config.
	Catalogue string `json:"catalogue"`
}

// table returns the models in the order of the files.
var table = sync.OnceValue(func() []*hubModel {
	var all []*hubModel
	for _, text := range [][]byte{hubJSON, othersJSON} {
		var list []*hubModel
		if err := json.Unmarshal(text, &list); err != nil {
			panic(fmt.Sprintf("the table of the hub's models: %v", err)) // a test reads it
		}
		all = append(all, list...)
	}
	return all
})

// hub maps lower-case names to models.
var hub = sync.OnceValue(func() map[string]*hubModel {
	byName := map[string]*hubModel{}
	for _, m := range table() {
		for _, name := range m.Names {
			byName[strings.ToLower(name)] = m
		}
	}
	return byName
})

// Names lists the models of the hub that are known.
func Names() []string {
	var names []string
	for _, m := range table() {
		names = append(names, m.Names...)
	}
	return names
}

// Known reports whether [Build] accepts a name.
func Known(name string) bool { return hub()[strings.ToLower(name)] != nil }

// Build makes the network of a model of the hub.
func Build(name string, o models.Overrides) (*models.Config, error) {
	m := hub()[strings.ToLower(name)]
	if m == nil {
		return nil, fmt.Errorf("unknown model %q of the hub; give its config.json", name)
	}
	if m.Catalogue != "" {
		c, err := zoo.Build(m.Catalogue, o)
		if err == nil {
			c.Name = name
		}
		return c, err
	}
	c, err := Read(name, m.Config, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}
