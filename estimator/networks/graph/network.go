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

// Network is a network of the catalogue, or one that is built from a configuration of the
// hub.
type Network struct {
	Name    string
	Aliases []string
	Kind    models.Family
	Batch   int
	Size    Sizes // the defaults
	Longest int64 // longest sequence for which the network has positions, or 0 for no limit
	Build   func(*Graph, Sizes)
	// With applies the sizes after a colon in the name. Values maps the names of these
	// sizes to their largest values.
	With   func(e *Network, values map[string]int64)
	Values map[string]int64
	// Finish adapts the configuration to the precision, or is nil.
	Finish func(*models.Config)
}

// Called returns the network with additional names.
func (e Network) Called(aliases ...string) Network {
	e.Aliases = aliases
	return e
}

// Headed returns the network with a head for that many classes, if its head has classes.
func (e Network) Headed(head string, classes int64) Network {
	if HasClasses(head) {
		e.Size.Classes = classes
	}
	return e
}

// Config returns the configuration of the network's training. set, if not empty, and o
// change its sizes and settings.
func (e Network) Config(set string, o models.Overrides) (*models.Config, error) {
	size, err := e.sized(set, o)
	if err != nil {
		return nil, err
	}
	train, err := e.train(o)
	if err != nil {
		return nil, err
	}
	g := &Graph{operations: operations{adapters: adapters{Rank: int64(o.LoRA), Targets: o.Targets, dora: o.DoRA}}}
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

// Sizes contains the sizes for which a network is built. A size is 0 if the network does
// not have it.
type Sizes struct {
	Image, Sequence, Classes, Vocabulary int64
	Target                               int64 // tokens written by an encoder-decoder's decoder
}
