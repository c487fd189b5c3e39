package graph

import (
	"fmt"

	"carma/configs/models"
)

// Group is a family of networks of the catalogue.
type Group struct {
	Name, Description string
	Entries           []Network
}

// Network is one that has a name in the catalogue or a configuration of the hub.
type Network struct {
	Name    string
	Aliases []string
	Kind    models.Family
	Batch   int
	Size    Sizes // the defaults
	Longest int64 // longest sequence with its positions, or 0 for no limit
	Build   func(*Graph, Sizes)
	// With takes the sizes behind a colon in the name; Values has their names and
	// largest values.
	With   func(e *Network, values map[string]int64)
	Values map[string]int64
	// Finish changes the configuration by the precision, unless nil.
	Finish func(*models.Config)
}

// Called adds other names.
func (e Network) Called(aliases ...string) Network {
	e.Aliases = aliases
	return e
}

// Headed is a network with a number of classes if its head has one.
func (e Network) Headed(head string, classes int64) Network {
	if HasClasses(head) {
		e.Size.Classes = classes
	}
	return e
}

// Config returns the configuration of the training of the network, with its sizes and
// settings changed by a data set (empty: none) and by o.
func (e Network) Config(set string, o models.Overrides) (*models.Config, error) {
	size, err := e.sized(set, o)
	if err != nil {
		return nil, err
	}
	train, err := e.train(o)
	if err != nil {
		return nil, err
	}
	g := &Graph{Rank: int64(o.LoRA), Targets: o.Targets, dora: o.DoRA}
	e.Build(g, size)
	if g.err != nil {
		return nil, g.err
	}
	if err := g.checkAdapters(); err != nil {
		return nil, err
	}
	cfg := &models.Config{
		Schema: models.Schema, Name: e.Name, Family: e.Kind, Origin: "catalogue", Train: train,
		Inputs: g.Inputs, Layers: g.Layers,
	}
	if set != "" {
		cfg.Name += "/" + Fold(set)
	}
	if e.Finish != nil {
		e.Finish(cfg)
	}
	if o.Bits != 0 {
		if g.Rank == 0 {
			return nil, fmt.Errorf("weights of %d bits are not trained; train adapters (LoRA)", o.Bits)
		}
		quantize(cfg, o.Bits)
	}
	return cfg, nil
}

// Sizes are the sizes for which a network is built. A size is 0 if the network does not
// have it.
type Sizes struct {
	Image, Sequence, Classes, Vocabulary int64
	Target                               int64 // tokens that a decoder beside an encoder writes
}
