// Package zoo is a catalogue of networks that people train. Its builders return
// each operation of the forward pass with its inputs, shapes and parameters. They
// follow the implementations in torchvision, timm and transformers, including
// which operations are in place, because that decides what stays in memory.
//
// With adapters (LoRA) the network is frozen, and the query and value projections
// get adapters. If query, key and value are one projection, that one gets an
// adapter.
package zoo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carma/configs/models"
	"carma/configs/nearest"
)

// Family is a group of networks of one kind, as tables show it.
type Family struct {
	Name        string
	Description string
	Kind        models.Family
	Members     []string
}

// settings are the sizes that a network is built for. 0: the network has no such
// size.
type settings struct {
	image, sequence, classes, vocabulary int64
	target                               int64 // tokens that a decoder beside an encoder writes
}

// entry is a network of the catalogue.
type entry struct {
	name    string
	aliases []string
	kind    models.Family
	batch   int
	size    settings // the defaults
	longest int64    // longest sequence with its positions; 0: no limit
	build   func(*graph, settings)
	// with takes the sizes behind a colon in the name; values has their names and
	// largest values.
	with   func(e *entry, values map[string]int64)
	values map[string]int64
	// finish changes the configuration by the precision; nil: nothing.
	finish func(*models.Config)
}

type group struct {
	name, description string
	entries           []entry
}

var catalogue = []group{
	resnets(), vggs(), mobileNets(), efficientNets(), inceptions(), denseNets(), convNeXts(), regNets(), mnasNets(),
	visionTransformers(), swins(), segmentation(), labelNetworks(), maskRCNNs(), detectors(), diffusions(), yolos(), berts(), gpts(), xlnets(), t5s(), llamas(),
	recommenders(), graphNetworks(), recurrents(), digits(),
}

// Names lists the networks, family by family. It leaves out mlp_NxD, a fully
// connected network of D hidden layers of N neurons.
func Names() []string {
	var names []string
	for _, f := range Families() {
		names = append(names, f.Members...)
	}
	return names
}

// Families lists the families with their members.
func Families() []Family {
	families := make([]Family, 0, len(catalogue))
	for _, c := range catalogue {
		f := Family{Name: c.name, Description: c.description, Kind: c.entries[0].kind}
		for _, e := range c.entries {
			f.Members = append(f.Members, e.name)
		}
		families = append(families, f)
	}
	return families
}

// Build returns the configuration of a network, with its defaults changed by o.
// Case and the characters - _ . in the name do not matter. A data set after a
// slash sets the size of images, the classes or the length of sequences.
//
// timm/NAME is a model of the timm library at its own image size. The error for
// an unknown name has the nearest one.
func Build(name string, o models.Overrides) (*models.Config, error) {
	if name, ok := strings.CutPrefix(name, traced); ok {
		return buildTraced(name, o)
	}
	wanted, set, _ := strings.Cut(name, "/")
	e, err := find(wanted)
	if err != nil {
		return nil, err
	}
	if o.Head != "" {
		return nil, fmt.Errorf("%s: has no choice of heads; those of the hub have, for example google-bert/bert-base-uncased", e.name)
	}
	cfg, err := e.config(set, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.name, err)
	}
	return cfg, nil
}

func (e entry) config(set string, o models.Overrides) (*models.Config, error) {
	size, err := e.sized(set, o)
	if err != nil {
		return nil, err
	}
	train, err := e.train(o)
	if err != nil {
		return nil, err
	}
	g := &graph{rank: int64(o.LoRA), targets: o.Targets, dora: o.DoRA}
	e.build(g, size)
	if g.err != nil {
		return nil, g.err
	}
	if err := g.checkAdapters(); err != nil {
		return nil, err
	}
	cfg := &models.Config{
		Schema: models.Schema, Name: e.name, Family: e.kind, Origin: "catalogue", Train: train,
		Inputs: g.inputs, Layers: g.layers,
	}
	if set != "" {
		cfg.Name += "/" + fold(set)
	}
	if e.finish != nil {
		e.finish(cfg)
	}
	if o.Bits != 0 {
		if g.rank == 0 {
			return nil, fmt.Errorf("weights of %d bits are not trained; train adapters (LoRA)", o.Bits)
		}
		quantize(cfg, o.Bits)
	}
	return cfg, nil
}

func fold(name string) string {
	return strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(strings.ToLower(name))
}

func find(name string) (entry, error) {
	if network, given, ok := strings.Cut(name, ":"); ok {
		return findSized(network, given)
	}
	wanted := fold(name)
	for _, c := range catalogue {
		for _, e := range c.entries {
			if fold(e.name) == wanted || slices.ContainsFunc(e.aliases, func(a string) bool { return fold(a) == wanted }) {
				return e, nil
			}
		}
	}
	if neurons, depth, ok := mlpSize(wanted); ok {
		return mlp(neurons, depth), nil
	}
	return entry{}, fmt.Errorf("unknown model %q; the nearest names: %s", name,
		strings.Join(nearest.Names(name, Names(), 3), ", "))
}

// mlpSize reads a name like mlp512x3.
func mlpSize(folded string) (neurons, depth int64, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(folded, "mnist"), "mlp")
	n, d, found := strings.Cut(rest, "x")
	if !ok || !found {
		return 0, 0, false
	}
	neurons, err := strconv.ParseInt(n, 10, 64)
	if err != nil || neurons < 1 || neurons > 1<<20 {
		return 0, 0, false
	}
	depth, err = strconv.ParseInt(d, 10, 64)
	return neurons, depth, err == nil && depth >= 1 && depth <= 1000
}

// Known reports whether [Build] knows a name, with or without a data set, and whatever
// its sizes are.
func Known(name string) bool {
	if name, ok := strings.CutPrefix(name, traced); ok {
		return isTraced(name)
	}
	name, _, _ = strings.Cut(name, "/")
	network, _, sized := strings.Cut(name, ":")
	e, err := find(network)
	return err == nil && (!sized || e.with != nil)
}
