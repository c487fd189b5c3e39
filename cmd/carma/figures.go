package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"carma/configs/models"
	environments "carma/estimator/environment"
	"carma/estimator/figures"
	"carma/estimator/methods"
	"carma/runner/api"
)

// fewFigures are the flags for a model of which only a few figures are known,
// the same as of carma run.
type fewFigures struct{ asked api.Submit }

func (o *fewFigures) flags(cmd *cobra.Command) {
	for _, name := range []string{"params", "family", "input", "layers"} {
		f, _ := api.FieldNamed(name)
		fieldFlag(cmd, f, &o.asked)
	}
}

func (o *fewFigures) any() bool { return o.first() != "" }

// first is the name of a flag that was given; empty: none.
func (o *fewFigures) first() string { return o.asked.Figure() }

// missing is what is needed and not given.
func (o *fewFigures) missing(batch int, batchFlag string) error {
	for _, m := range []struct {
		given         bool
		flag, example string
	}{{o.asked.Params > 0, "params", "--params 25M"}, {batch > 0, batchFlag, "--" + batchFlag + " 64"}, {o.asked.Family != "", "family", "--family cnn"}} {
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
		Family: models.Family(o.few.asked.Family), Params: o.few.asked.Params, Batch: with.Batch, Input: o.few.asked.Input, Layers: o.few.asked.Layers,
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
