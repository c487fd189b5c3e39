package main

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/configs/models"
	"carma/configs/nearest"
	"carma/estimator/networks"
	"carma/estimator/networks/zoo"
)

func (a *app) modelsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "models COMMAND",
		Short: "List, show and import the networks that tasks train",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	cmd.AddCommand(a.modelsListCommand(), a.modelsShowCommand(), a.modelsImportCommand())
	for _, c := range cmd.Commands() {
		c.DisableFlagsInUseLine = true
	}
	return cmd
}

func (a *app) modelsListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "List the models of the catalogue",
		Args:  noArgs,
	}
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t := &table{columns: []column{{title: "NAME"}, {title: "FAMILY"}, {title: "PARAMS", right: true}, {title: "BATCH", right: true}, {title: "ORIGIN"}}}
		list := []modelSummary{}
		for _, name := range zoo.Names() {
			c, err := zoo.Build(name, models.Overrides{})
			if err != nil {
				return err
			}
			s := summaryOf(c)
			s.Name = name
			list = append(list, s)
			t.add(name, string(s.Family), millions(s.Params), strconv.Itoa(s.Train.Batch), s.Origin)
		}
		if *asJSON {
			return a.json(list)
		}
		return t.write(a.out, widthOf(a.out))
	}
	return cmd
}

// overrideFlags adds the flags that change a configuration.
func overrideFlags(cmd *cobra.Command) *models.Overrides {
	o := new(models.Overrides)
	f := cmd.Flags()
	countFlag(f, &o.Batch, 1, "batch", "samples of one step, on all GPUs together")
	countFlag(f, &o.Image, 1, "image", "side of a square image in pixels")
	countFlag(f, &o.Sequence, 1, "seq", "tokens of one sample")
	countFlag(f, &o.Classes, 1, "classes", "classes of the output")
	countFlag(f, &o.Vocabulary, 1, "vocabulary", "tokens of the vocabulary")
	countFlag(f, &o.LoRA, 1, "lora", "train adapters of this rank, the rest is frozen")
	countFlag(f, &o.GPUs, 1, "gpus", "GPUs of the training")
	wordFlag(cmd, &o.Precision, models.Precisions(), "precision")
	wordFlag(cmd, &o.Optimizer, models.Optimizers(), "optimizer")
	wordFlag(cmd, &o.Implementation, models.Implementations(), "implementation")
	wordFlag(cmd, &o.Parallel, models.Parallels(), "parallel")
	f.Var(&parsed[*bool]{to: &o.Checkpointing, kind: "bool", parse: func(s string) (*bool, error) {
		on, err := strconv.ParseBool(s)
		if err != nil {
			err = errors.New("\"" + s + "\" is not true or false")
		}
		return &on, err
	}}, "checkpointing", "recompute each block's activations in the backward pass")
	f.Lookup("checkpointing").NoOptDefVal = "true"
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "batch-size" {
			name = "batch" // run's word
		}
		return pflag.NormalizedName(name)
	})
	return o
}

// wordFlag takes one of some words, whatever the case.
func wordFlag[T ~string](cmd *cobra.Command, to *T, list []string, name string) {
	cmd.Flags().Var(&parsed[T]{to: to, kind: "word", parse: func(s string) (T, error) {
		s = strings.ToLower(s)
		return T(s), nearest.OneOf(s, list)
	}}, name, strings.Join(list, ", "))
	complete(cmd, name, words(list))
}

// model returns what ref names: a model of the catalogue, a configuration
// file, or a summary or ONNX file to import; "-" is the input.
func (a *app) model(ref string, o models.Overrides) (*models.Config, error) {
	var c *models.Config
	var err error
	if ref == "-" {
		c, err = networks.Read("stdin", a.in, o)
	} else {
		c, err = networks.Find(ref, o)
	}
	if errors.Is(err, fs.ErrNotExist) {
		hint := "carma models list shows those of the catalogue"
		if near := nearest.Near(ref, zoo.Names()); len(near) > 0 {
			hint = "nearest: " + strings.Join(near[:min(3, len(near))], ", ")
		}
		return nil, usagef(hint, "%s: no such file, and no model of that name", ref)
	}
	if err != nil {
		return nil, usagef("", "%s", err.Error())
	}
	return c, nil
}

// oneModel checks that one model is named.
func oneModel(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return usagef("write for example: "+cmd.CommandPath()+" model.json", "it takes one model, not %d", len(args))
	}
	return nil
}

// modelNames completes a model: those of the catalogue, and files.
func modelNames(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	names, _ := words(zoo.Names())(cmd, args, start)
	return names, cobra.ShellCompDirectiveDefault
}
