package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/configs/models"
	environments "carma/estimator/environment"
	"carma/estimator/figures"
	"carma/estimator/methods"
)

// fewFigures are the flags for a model of which only a few figures are known.
type fewFigures struct {
	params, input int64
	family        string
	layers        int
}

func (o *fewFigures) flags(cmd *cobra.Command) {
	o.flagsOn(cmd.Flags())
	complete(cmd, "family", words(figures.Families()))
}

func (o *fewFigures) flagsOn(f *pflag.FlagSet) {
	f.Var(&parsed[int64]{to: &o.params, kind: "N", parse: parseCount}, "params", "parameters of a model that carma does not know, for example 25M")
	choiceFlag(f, &o.family, figures.Families(), "family", "its family: "+strings.Join(figures.Families(), ", "))
	f.Var(&parsed[int64]{to: &o.input, kind: "shape", parse: parseShape}, "input", "shape of one sample of it, for example 3x224x224")
	countFlag(f, &o.layers, 1, "layers", "its convolutions and linear layers")
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

// parseCount reads 25000000, 25M, 1.3B (or G), 70k.
func parseCount(s string) (int64, error) {
	number, factor := s, 1.0
	if n := len(s); n > 0 {
		if i := strings.IndexByte("kmgbt", s[n-1]|0x20); i >= 0 {
			number, factor = s[:n-1], []float64{1e3, 1e6, 1e9, 1e9, 1e12}[i]
		}
	}
	x, err := strconv.ParseFloat(number, 64)
	x *= factor
	if err != nil || !(x >= 1) || x > 8e12 || math.Abs(x-math.Round(x)) > 1e-3 {
		return 0, fmt.Errorf("%q is not a number of parameters from 1 to 8T; write for example 25M or 1.3B", s)
	}
	return int64(math.Round(x)), nil
}

// parseShape reads 3x224x224 as the number of elements.
func parseShape(s string) (int64, error) {
	n := int64(1)
	for _, part := range strings.Split(strings.ToLower(s), "x") {
		d, err := strconv.ParseInt(part, 10, 64)
		if err != nil || d < 1 || d > 1<<40 || n > 1<<40/d {
			return 0, fmt.Errorf("%q is not the shape of a sample; write for example 3x224x224", s)
		}
		n *= d
	}
	return n, nil
}
