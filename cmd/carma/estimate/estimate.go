// Package estimate contains the commands carma estimate and carma models: networks, and
// the memory that their training needs.
package estimate

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/settings"
	"carma/configs/models"
	"carma/containers"
	"carma/estimator/booking"
	environments "carma/estimator/environment"
	"carma/estimator/methods"
	"carma/estimator/networks"
	"carma/estimator/networks/named"
	"carma/estimator/probe"
	"carma/estimator/rivals"
)

// options contains the flags of estimate.
type options struct {
	probe       probeOptions
	overrides   *models.Overrides
	few         fewFigures
	probing     bool
	model       string
	estimators  []string
	environment string
	confidence  float64
	output      string
	evaluate    string
	history     bool
	events      string
	rows        bool
	json        *bool
}

// Command returns the command carma estimate.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "estimate [flags] MODEL|FILE|IMAGE [-- COMMAND...]",
		GroupID: cli.GroupMemory,
		Short:   "Estimate how much GPU memory a training needs",
		Long: `Estimate how much GPU memory a training needs on each of its GPUs: by every
estimator the likeliest peak and, if it has one, an upper bound. MODEL is a name
of carma models list, with a data set if you like (resnet18/cifar100). FILE is a
model configuration, a config.json of the transformers library or a folder with
one. Safetensors files beside it are compared with it; alone they count
parameters for --family.

With --probe, carma runs the program of an IMAGE for two training steps on the
CPU: unchanged, without GPU and network, with read-only mounts. The program must
use PyTorch 1.13 or newer. -o writes the model to a file, which can be corrected
by hand.

For a model that carma does not know, give --params, --batch and --family, and
if known --input and --layers. The bound is then far wider.`,
		Example: `  carma estimate resnet50 --batch 128 --precision amp
  carma estimate llama3_8b --lora 16 --seq 2048 --batch 1 --precision bf16
  carma estimate --probe my/training:1 -- python train.py --batch-size 64
  carma estimate --params 25M --batch 64 --family cnn --input 3x224x224
  carma estimate --evaluate measured.csv
  carma estimate --evaluate --history`,
		ValidArgsFunction: modelNames,
	}
	var o options
	o.overrides = overrideFlags(cmd)
	f := cmd.Flags()
	o.few.flags(cmd)
	o.probe.flags(f)
	f.BoolVar(&o.probing, "probe", false, "run the first steps of the image's program on the CPU")
	f.StringVar(&o.model, "est-model", "", "the `model`, as carma run takes it; the same as MODEL or FILE")
	f.StringSliceVar(&o.estimators, "estimator", nil, "these `estimators` only: "+strings.Join(names(rivals.All(booking.Own())), ", "))
	f.StringVar(&o.environment, "environment", environments.Default, "software and GPU it will run on: "+strings.Join(environments.Names(), ", "))
	f.Float64Var(&o.confidence, "confidence", 0.95, "probability that the upper bound holds, between 0 and 1")
	f.StringVarP(&o.output, "output", "o", "", "write the configuration to a `file` (JSON)")
	f.StringVar(&o.evaluate, "evaluate", "", "score the estimators on a `file` of measured trainings (estimates.csv, cnn.csv, mlp.csv, timm_faketensor.csv, xmem.csv)")
	f.BoolVar(&o.history, "history", false, "with --evaluate in place of a file: score the daemon's estimates of your finished tasks, of all if you are an admin")
	f.StringVar(&o.events, "events", "", "replay a recorded training's allocations: a `file` of carma-events, .gz too (docs/estimators.md)")
	f.BoolVar(&o.rows, "rows", false, "with --evaluate: every row too")
	o.json = cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.model == "" {
			return estimate(a, cmd, o, args)
		}
		if len(args) > 0 {
			return cli.Usagef("leave one of the two out", "--est-model %s names the model; %q is one too many", o.model, args[0])
		}
		return estimate(a, cmd, o, []string{o.model})
	}
	cli.Complete(cmd, "est-model", modelNames)
	return cmd
}

func estimate(a *cli.App, cmd *cobra.Command, o options, args []string) error {
	if o.evaluate == "--history" { // the preceding flag takes any word
		o.evaluate, o.history = "", true
	}
	if o.history {
		return o.scores(a, cmd, args)
	}
	chosen, err := o.methods()
	if err != nil {
		return err
	}
	env, err := environments.Named(o.environment)
	if err != nil {
		return cli.Usagef("", "--environment: %v", err)
	}
	if !(o.confidence > 0 && o.confidence < 1) {
		return cli.Usagef("write for example --confidence 0.95", "--confidence %g is not between 0 and 1", o.confidence)
	}
	if o.evaluate != "" {
		if len(args) > 0 {
			return cli.Usagef("", "--evaluate takes no model; %q is one too many", args[0])
		}
		return scoreFile(a, o, chosen)
	}
	if o.events != "" {
		if len(args) > 0 {
			return cli.Usagef("", "--events takes no model; %q is one too many", args[0])
		}
		return estimateEvents(a, o, &env)
	}
	if path := weightsAlone(o, args); path != "" {
		return estimateWeights(a, cmd, o, &env, chosen, path)
	}
	if o.few.any() {
		if len(args) > 0 {
			return cli.Usagef("", "--%s is for a model that carma does not know; %q is one too many", o.few.first(), args[0])
		}
		return estimateFew(a, cmd, o, &env, chosen)
	}
	if len(args) == 0 || args[0] == "" {
		return cli.Usagef("write for example: carma estimate resnet50 --batch 64", "no model named")
	}
	c, err := subject(a, cmd, o, args)
	if err != nil {
		return err
	}
	if err := methods.Check(c); err != nil {
		return cli.Usagef("", "%s: %v", c.Name, err)
	}
	if o.output != "" {
		if err := cli.ReplaceFile(o.output, c.Write); err != nil {
			return err
		}
	}
	return printEstimates(a, estimates(c, &env, chosen, o.confidence, measuredPeak(args[0], c)), *o.json)
}

// scores carries out --history.
func (o *options) scores(a *cli.App, cmd *cobra.Command, args []string) error {
	switch {
	case o.evaluate != "":
		return cli.Usagef("leave one of them out", "--history is about the daemon's tasks, --evaluate %s about a file", o.evaluate)
	case len(args) > 0:
		return cli.Usagef("", "--history takes no model; %q is one too many", args[0])
	}
	return scoreHistory(a, cmd, *o.json)
}

// subject returns the configuration to estimate.
func subject(a *cli.App, cmd *cobra.Command, o options, args []string) (*models.Config, error) {
	if !o.probing {
		if len(args) > 1 {
			return nil, cli.Usagef("an image's command needs --probe", "it takes one model, not %d", len(args))
		}
		if strings.Contains(args[0], ":") && !named.Known(args[0]) && !networks.IsFile(args[0]) {
			return nil, cli.Usagef("add --probe for an image", "%s: no such file, and no model of that name", args[0])
		}
		return model(a, args[0], *o.overrides)
	}
	config, _, err := settings.Load(cmd.Flags())
	if err != nil {
		return nil, err
	}
	o.probe.gpus = o.overrides.GPUs
	found, err := o.probe.probeConfig(cmd.Context(), config, args)
	switch failed, ok := errors.AsType[*probe.FailedError](err); {
	case ok:
		return nil, errors.New("the probe found nothing: " + failed.Reason)
	case errors.Is(err, containers.ErrNotFound):
		return nil, cli.Usagef("pull or build it first", "%v", err)
	case err != nil:
		return nil, err
	}
	changed, err := found.With(*o.overrides)
	if err != nil {
		return nil, cli.Usagef("", "%v", err)
	}
	if !*o.json {
		s := summaryOf(changed)
		s.print(a)
		a.Println()
	}
	return changed, nil
}

// methods returns the requested estimators.
func (o *options) methods() ([]methods.Method, error) {
	all := rivals.All(booking.Own())
	if len(o.estimators) == 0 || slices.Contains(o.estimators, "all") {
		return all, nil
	}
	var chosen []methods.Method
	for _, name := range o.estimators {
		m, err := methods.Find(all, name)
		if err != nil {
			return nil, cli.Usagef("", "--estimator: %v", err)
		}
		chosen = append(chosen, m)
	}
	return chosen, nil
}

func names(all []methods.Method) []string {
	var out []string
	for _, m := range all {
		out = append(out, m.Name())
	}
	return out
}
