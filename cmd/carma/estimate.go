package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"carma/configs"
	"carma/configs/models"
	"carma/containers"
	"carma/estimator/booking"
	environments "carma/estimator/environment"
	"carma/estimator/methods"
	"carma/estimator/networks"
	"carma/estimator/networks/zoo"
	"carma/estimator/probe"
	"carma/estimator/rivals"
)

// estimateOptions are the flags of estimate.
type estimateOptions struct {
	probe       probeOptions
	overrides   *models.Overrides
	few         fewFigures
	probing     bool
	estimators  []string
	environment string
	confidence  float64
	output      string
	evaluate    string
	events      string
	rows        bool
	json        *bool
}

func (a *app) estimateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "estimate [flags] MODEL|FILE|IMAGE [-- COMMAND...]",
		Short: "Tell how much GPU memory a training needs, and how sure that is",
		Long: `Tell how much GPU memory a training needs on each of its GPUs, by every
estimator: the likeliest peak and an upper bound. MODEL is one of carma models
list, with a data set if you like (resnet18/cifar100); FILE a configuration, or
a summary or ONNX file that carma models import takes.

With --probe the program of an IMAGE itself runs for two training steps on the
CPU: unchanged, without a GPU and without network; mounts are read-only. It
must use PyTorch 1.13 or newer. -o writes the model to a file, which can be
corrected by hand.

For a model that carma does not know, give --params, --batch and --family, and
better --input and --layers too. The bound is then far wider.`,
		Example: `  carma estimate resnet50 --batch 128 --precision amp
  carma estimate llama3_8b --lora 16 --seq 2048 --batch 1 --precision bf16
  carma estimate --probe my/training:1 -- python train.py --batch-size 64
  carma estimate --params 25M --batch 64 --family cnn --input 3x224x224
  carma estimate --evaluate measured.csv`,
		ValidArgsFunction: modelNames,
	}
	var o estimateOptions
	o.overrides = overrideFlags(cmd)
	f := cmd.Flags()
	o.few.flags(cmd)
	o.probe.flags(f)
	f.BoolVar(&o.probing, "probe", false, "run the first steps of the image's program on the CPU")
	f.StringSliceVar(&o.estimators, "estimator", nil, "these `estimators` only: "+strings.Join(names(rivals.All(booking.Own())), ", "))
	f.StringVar(&o.environment, "environment", environments.Default, "software and GPU it will run on: "+strings.Join(environments.Names(), ", "))
	f.Float64Var(&o.confidence, "confidence", 0.95, "that the upper bound holds, between 0 and 1")
	f.StringVarP(&o.output, "output", "o", "", "write the configuration to a `file` (JSON)")
	f.StringVar(&o.evaluate, "evaluate", "", "score the estimators on a `file` of measured trainings (estimates.csv, cnn.csv, mlp.csv, timm_faketensor.csv)")
	f.StringVar(&o.events, "events", "", "replay a recorded training's allocations: a `file` of carma-events, .gz too (docs/estimators.md)")
	f.BoolVar(&o.rows, "rows", false, "with --evaluate: every row too")
	o.json = addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.estimate(cmd, o, args) }
	return cmd
}

func (a *app) estimate(cmd *cobra.Command, o estimateOptions, args []string) error {
	chosen, err := o.methods()
	if err != nil {
		return err
	}
	env, err := environments.Named(o.environment)
	if err != nil {
		return usagef("", "--environment: %v", err)
	}
	if !(o.confidence > 0 && o.confidence < 1) {
		return usagef("write for example --confidence 0.95", "--confidence %g is not between 0 and 1", o.confidence)
	}
	if o.evaluate != "" {
		if len(args) > 0 {
			return usagef("", "--evaluate takes no model; %q is one too many", args[0])
		}
		return a.evaluate(o, chosen)
	}
	if o.events != "" {
		if len(args) > 0 {
			return usagef("", "--events takes no model; %q is one too many", args[0])
		}
		return a.estimateEvents(o, &env)
	}
	if o.few.any() {
		if len(args) > 0 {
			return usagef("", "--%s is for a model that carma does not know; %q is one too many", o.few.first(), args[0])
		}
		return a.estimateFew(cmd, o, &env, chosen)
	}
	if len(args) == 0 || args[0] == "" {
		return usagef("write for example: carma estimate resnet50 --batch 64", "no model named")
	}
	c, err := a.subject(cmd, o, args)
	if err != nil {
		return err
	}
	if o.output != "" {
		if err := writeModel(o.output, c); err != nil {
			return err
		}
	}
	return a.printEstimates(estimates(c, &env, chosen, o.confidence, measuredPeak(args[0], c)), *o.json)
}

// subject is the configuration to estimate.
func (a *app) subject(cmd *cobra.Command, o estimateOptions, args []string) (*models.Config, error) {
	if !o.probing {
		if len(args) > 1 {
			return nil, usagef("an image's command needs --probe", "it takes one model, not %d", len(args))
		}
		if strings.Contains(args[0], ":") && !zoo.Known(args[0]) && !networks.IsFile(args[0]) {
			return nil, usagef("add --probe for an image", "%s: no such file, and no model of that name", args[0])
		}
		return a.model(args[0], *o.overrides)
	}
	config, _, err := configs.Load(cmd.Flags())
	if err != nil {
		return nil, err
	}
	o.probe.gpus = o.overrides.GPUs
	found, err := o.probe.probeConfig(cmd.Context(), config, args)
	switch failed, ok := errors.AsType[*probe.FailedError](err); {
	case ok:
		return nil, errors.New("the probe found nothing: " + failed.Reason)
	case errors.Is(err, containers.ErrNotFound):
		return nil, usagef("pull or build it first", "%v", err)
	case err != nil:
		return nil, err
	}
	changed, err := found.With(*o.overrides)
	if err != nil {
		return nil, usagef("", "%v", err)
	}
	if !*o.json {
		s := summaryOf(changed)
		s.print(a)
		a.println()
	}
	return changed, nil
}

// methods are the estimators asked for.
func (o *estimateOptions) methods() ([]methods.Method, error) {
	all := rivals.All(booking.Own())
	if len(o.estimators) == 0 || slices.Contains(o.estimators, "all") {
		return all, nil
	}
	var chosen []methods.Method
	for _, name := range o.estimators {
		m, err := methods.Find(all, name)
		if err != nil {
			return nil, usagef("", "--estimator: %v", err)
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
