package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"carma/configs/models"
)

func (a *app) modelsShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NAME|FILE [flags]",
		Short: "Tell what a model is: parameters, layers, activations",
		Long: `Describe a model: a name of the catalogue, a configuration file, or a summary or
ONNX file as import takes it. Flags change it first. Activations are the
elements of all outputs of one sample.`,
		Example: `  carma models show resnet50.json --batch 64 --precision amp
  carma models show summary.txt --layers`,
		Args:              oneModel,
		ValidArgsFunction: modelNames,
	}
	o := overrideFlags(cmd)
	layers := cmd.Flags().Bool("layers", false, "print the table of layers too")
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.model(args[0], *o)
		if err != nil {
			return err
		}
		s := summaryOf(c)
		if *asJSON {
			if *layers {
				s.Table = c.Layers
			}
			return a.json(s)
		}
		s.print(a)
		if *layers {
			a.println()
			return layerTable(c).write(a.out, widthOf(a.out))
		}
		return nil
	}
	return cmd
}

func (a *app) modelsImportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import FILE [flags]",
		Short: "Make a configuration of a model's summary or ONNX file",
		Long: `Make a model configuration of FILE ("-": the input): the output of torchsummary,
torchinfo, pytorch-model-summary or PyTorch's print(model), or an ONNX file,
whose weights are not read. What FILE does not say is inferred or assumed, with
a note on stderr. A printed module tree has no shapes: give --image or --seq, as
for shapes that an ONNX file leaves open.`,
		Example: `  carma models import summary.txt -o model.json --batch 64
  carma models import net.onnx -o model.json --batch 32
  python -c 'print(model)' | carma models import - --seq 512 -o model.json`,
		Args: oneModel,
	}
	o := overrideFlags(cmd)
	to := cmd.Flags().StringP("output", "o", "", "write the configuration to this `file` (default: print it)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.model(args[0], *o)
		if err != nil {
			return err
		}
		for _, w := range c.Warnings {
			a.say("%s", printable(w))
		}
		if *to == "" {
			return c.Write(a.out)
		}
		if err := writeModel(*to, c); err != nil {
			return usagef("", "--output: %v", err)
		}
		return nil
	}
	return cmd
}

// modelSummary is what is told of a model.
type modelSummary struct {
	Name        string         `json:"name"`
	Family      models.Family  `json:"family"`
	Origin      string         `json:"origin"`
	Train       models.Train   `json:"train"`
	Inputs      []models.Input `json:"inputs"`
	Layers      int            `json:"layers"`
	Params      int64          `json:"params"`
	Trainable   int64          `json:"trainable"`
	Activations int64          `json:"activations_per_sample"`
	Hash        string         `json:"hash"`
	Warnings    []string       `json:"warnings"`
	Table       []models.Layer `json:"layer_table,omitempty"`
}

func summaryOf(c *models.Config) modelSummary {
	return modelSummary{
		c.Name, c.Family, c.Origin, c.Train, c.Inputs, len(c.Layers), c.Params(), c.TrainableParams(), c.Activations(),
		c.Hash(), append([]string{}, c.Warnings...), nil,
	}
}

func (s *modelSummary) print(a *app) {
	var inputs []string
	for _, in := range s.Inputs {
		inputs = append(inputs, shapeText(in.Shape))
	}
	t := &s.Train
	for _, line := range [][2]string{
		{"name", s.Name}, {"family", string(s.Family)}, {"origin", s.Origin},
		{"input", strings.Join(inputs, ", ")}, {"layers", strconv.Itoa(s.Layers)},
		{"params", thousands(s.Params)}, {"trainable", thousands(s.Trainable)},
		{"activations", thousands(s.Activations) + " per sample"},
		{"batch", strconv.Itoa(t.Batch)}, {"precision", orDefault(string(t.Precision), models.Precisions())},
		{"optimizer", orDefault(string(t.Optimizer), models.Optimizers()) + ", " + orDefault(t.Implementation, models.Implementations())},
		{"checkpointing", strconv.FormatBool(t.Checkpointing)},
		{"GPUs", fmt.Sprintf("%d, parallel %s", max(1, t.GPUs), orDefault(string(t.Parallel), models.Parallels()))},
		{"hash", s.Hash},
	} {
		a.printf("%-14s%s\n", line[0], printable(line[1]))
	}
	for _, w := range s.Warnings {
		a.printf("%-14s%s\n", "warning", printable(w))
	}
}

func orDefault(word string, list []string) string {
	if word == "" {
		return list[0]
	}
	return word
}

func layerTable(c *models.Config) *table {
	t := &table{columns: []column{
		{title: "#", right: true}, {title: "NAME", least: 12, share: 2}, {title: "TYPE"}, {title: "INPUTS", least: 6, share: 1},
		{title: "OUTPUT", least: 8, share: 1}, {title: "PARAMS", right: true},
	}}
	for i := range c.Layers {
		l := &c.Layers[i]
		var from []string
		for _, at := range l.Inputs {
			from = append(from, strconv.Itoa(at))
		}
		t.add(strconv.Itoa(i), l.Name, l.Type, strings.Join(from, ","), shapeText(l.Out), thousands(l.Parameters()))
	}
	return t
}

func shapeText(shape []int64) string {
	parts := make([]string, len(shape))
	for i, d := range shape {
		parts[i] = strconv.FormatInt(d, 10)
	}
	return strings.Join(parts, " x ")
}

// thousands is 1,234,567.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// millions is 25.6M.
func millions(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2fG", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
	return thousands(n)
}
