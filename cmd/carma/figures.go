package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"carma/configs/models"
	environments "carma/estimator/environment"
	"carma/estimator/figures"
	"carma/estimator/methods"
	"carma/mapper/units"
)

// fewFigures are the flags for a model of which only a few figures are known.
type fewFigures struct {
	params, input int64
	family        string
	layers        int
}

func (o *fewFigures) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var(&parsed[int64]{to: &o.params, kind: "N", parse: units.ParseParameters}, "params", "parameters of a model that carma does not know, for example 25M")
	choiceFlag(f, &o.family, figures.Families(), "family", "its family: "+strings.Join(figures.Families(), ", "))
	f.Var(&parsed[int64]{to: &o.input, kind: "shape", parse: units.ParseShape}, "input", "shape of one sample of it, for example 3x224x224")
	countFlag(f, &o.layers, 1, "layers", "its convolutions and linear layers")
	complete(cmd, "family", words(figures.Families()))
}

func (o *fewFigures) any() bool { return o.first() != "" }

// first is the name of a flag that was given; empty: none.
func (o *fewFigures) first() string {
	switch {
	case o.params > 0:
		return "params"
	case o.family != "":
		return "family"
	case o.input > 0:
		return "input"
	case o.layers > 0:
		return "layers"
	}
	return ""
}

// missing is what is needed and not given.
func (o *fewFigures) missing(batch int, batchFlag string) error {
	for _, m := range []struct {
		given         bool
		flag, example string
	}{{o.params > 0, "params", "--params 25M"}, {batch > 0, batchFlag, "--" + batchFlag + " 64"}, {o.family != "", "family", "--family cnn"}} {
		if !m.given {
			return usagef("write for example "+m.example, "--%s needs --%s too", o.first(), m.flag)
		}
	}
	return nil
}

// estimateFew answers for a few figures.
func (a *app) estimateFew(cmd *cobra.Command, o estimateOptions, env *environments.Environment, chosen []methods.Method) error {
	with := o.overrides
	for _, name := range []string{"image", "seq", "classes", "vocabulary", "lora", "implementation", "parallel", "checkpointing", "probe", "output"} {
		if cmd.Flags().Changed(name) {
			return usagef("leave it away, or give a model", "--%s changes layers, and --%s is for a model whose layers are not known", name, o.few.first())
		}
	}
	if err := o.few.missing(with.Batch, "batch"); err != nil {
		return err
	}
	f := figures.Figures{
		Family: models.Family(o.few.family), Params: o.few.params, Batch: with.Batch, Input: o.few.input, Layers: o.few.layers,
		Optimizer: with.Optimizer, Precision: with.Precision, GPUs: with.GPUs,
	}
	if err := f.Check(); err != nil {
		return usagef("", "%v", err)
	}
	train := models.Train{Batch: with.Batch, Optimizer: with.Optimizer, Precision: with.Precision, GPUs: with.GPUs}
	if f.GPUs > 1 {
		train.Parallel = models.DDP
	}
	r := reportOf(fmt.Sprintf("unknown %s, %d parameters", f.Family, f.Params), f.Family, train, env, o.confidence)
	r.ask(chosen, methods.Subject{Figures: &f, Environment: &env.Environment, Confidence: o.confidence, Capacity: env.Capacity})
	return a.printEstimates(r, *o.json)
}
