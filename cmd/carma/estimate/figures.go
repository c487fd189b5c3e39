package estimate

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/configs/models"
	environments "carma/estimator/environment"
	"carma/estimator/figures"
	"carma/estimator/methods"
	"carma/runner/api"
)

// fewFigures contains the flags for a model with only a few known figures, the same as in
// carma run.
type fewFigures struct {
	asked api.Submit
	of    string // the file with the parameters, or empty if they were given
}

func (o *fewFigures) flags(cmd *cobra.Command) {
	for _, name := range []string{"params", "family", "input", "layers"} {
		f, _ := api.FieldNamed(name)
		cli.FieldFlag(cmd, f, &o.asked)
	}
}

func (o *fewFigures) any() bool { return o.first() != "" }

// first returns the name of a figure's flag that was given, or "".
func (o *fewFigures) first() string { return o.asked.Figure() }

// missing returns an error for a required flag that was not given.
func (o *fewFigures) missing(batch int, batchFlag string) error {
	for _, m := range []struct {
		given         bool
		flag, example string
	}{{o.asked.Params > 0, "params", "--params 25M"}, {batch > 0, batchFlag, "--" + batchFlag + " 64"}, {o.asked.Family != "", "family", "--family cnn"}} {
		if !m.given {
			return cli.Usagef("write for example "+m.example, "--%s needs --%s too", o.first(), m.flag)
		}
	}
	return nil
}

// estimateFew estimates from a few figures.
func estimateFew(a *cli.App, cmd *cobra.Command, o options, env *environments.Environment, chosen []methods.Method) error {
	with := o.overrides
	ofLayers := []string{"probe", "output"}
	for _, s := range models.Settings() {
		if s.Name != "precision" && s.Name != "optimizer" {
			ofLayers = append(ofLayers, cmp.Or(s.Short, s.Name))
		}
	}
	for _, name := range ofLayers {
		if cmd.Flags().Changed(name) {
			return cli.Usagef("leave it away, or give a model", "--%s changes layers, and --%s is for a model whose layers are not known", name, o.few.first())
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
		return cli.Usagef("", "%v", err)
	}
	train := models.Train{Batch: with.Batch, Optimizer: with.Optimizer, Precision: with.Precision, GPUs: with.GPUs}
	if f.GPUs > 1 {
		train.Parallel = models.DDP
	}
	name := fmt.Sprintf("unknown %s, %d parameters", f.Family, f.Params)
	if o.few.of != "" {
		name = o.few.of
	}
	r := reportOf(name, f.Family, train, env, o.confidence)
	r.ask(chosen, methods.Subject{Figures: &f, Environment: &env.Environment, Confidence: o.confidence, Capacity: env.Capacity})
	return printEstimates(a, r, *o.json)
}
