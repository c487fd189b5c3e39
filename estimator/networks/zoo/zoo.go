// Package zoo is a catalogue of networks that people train, by name. Its builders, most
// of them in packages vision, transformer, detection and diffusion, return each operation
// of the forward pass with its inputs, shapes and parameters. They follow the
// implementations in torchvision, timm and transformers, including which operations are
// in place, because that decides what stays in memory.
//
// With adapters (LoRA) the network is frozen, and the query and value projections get
// adapters. If query, key and value are one projection, that projection gets an adapter.
package zoo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carma/configs/models"
	"carma/estimator/networks/detection"
	"carma/estimator/networks/diffusion"
	"carma/estimator/networks/graph"
	"carma/estimator/networks/timm"
	"carma/estimator/networks/transformer"
	"carma/estimator/networks/vision"
	"carma/internal/suggest"
)

// Family is a group of networks of one kind, as listed in tables.
type Family struct {
	Name        string
	Description string
	Kind        models.Family
	Members     []string
}

var catalogue = []graph.Group{
	vision.ResNets(), vision.VGGs(), vision.MobileNets(), vision.EfficientNets(), vision.Inceptions(), vision.DenseNets(), vision.ConvNeXts(), vision.RegNets(), vision.MnasNets(),
	transformer.VisionTransformers(), transformer.Swins(), vision.UNets(), vision.LabelNetworks(), detection.MaskRCNNs(), detection.Detectors(), diffusion.Diffusions(), detection.YOLOs(), transformer.BERTs(), transformer.GPTs(), transformer.XLNets(), transformer.T5s(), transformer.Llamas(),
	recommenders(), graphNetworks(), recurrents(), vision.Digits(),
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
		f := Family{Name: c.Name, Description: c.Description, Kind: c.Entries[0].Kind}
		for _, e := range c.Entries {
			f.Members = append(f.Members, e.Name)
		}
		families = append(families, f)
	}
	return families
}

// Build returns the configuration of a network, with its defaults changed by o. Case and
// the characters - _ . in the name do not matter. A data set after a slash sets the size
// of images, the classes or the length of sequences.
//
// timm/NAME is a model of the timm library at its own image size. The error for an
// unknown name contains the nearest name.
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
		return nil, fmt.Errorf("%s: has no choice of heads; those of the hub have, for example google-bert/bert-base-uncased", e.Name)
	}
	cfg, err := e.Config(set, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	return cfg, nil
}

func find(name string) (graph.Network, error) {
	if network, given, ok := strings.Cut(name, ":"); ok {
		return findSized(network, given)
	}
	wanted := graph.Fold(name)
	for _, c := range catalogue {
		for _, e := range c.Entries {
			if graph.Fold(e.Name) == wanted || slices.ContainsFunc(e.Aliases, func(a string) bool { return graph.Fold(a) == wanted }) {
				return e, nil
			}
		}
	}
	if neurons, depth, ok := mlpSize(wanted); ok {
		return vision.MLP(neurons, depth), nil
	}
	return graph.Network{}, fmt.Errorf("unknown model %q; the nearest names: %s", name,
		strings.Join(suggest.Names(name, Names(), 3), ", "))
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

// Known reports whether [Build] accepts a name, with or without a data set, regardless of
// its sizes.
func Known(name string) bool {
	if name, ok := strings.CutPrefix(name, traced); ok {
		return timm.Known(name)
	}
	name, _, _ = strings.Cut(name, "/")
	network, _, sized := strings.Cut(name, ":")
	e, err := find(network)
	return err == nil && (!sized || e.With != nil)
}
