package estimate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/configs/models"
)

func modelsShowCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NAME|FILE [flags]",
		Short: "Describe a model: parameters, layers, activations",
		Long: `Describe a model: a name of the catalogue, a model configuration, or a
config.json of the transformers library ("-": standard input). Flags change it
first. Activations are the elements of all outputs of one sample. -o writes a
model configuration, which can be corrected by hand.`,
		Example: `  carma models show resnet50.json --batch 64 --precision amp
  carma models show resnet50 --layers
  carma models show llama3_8b --seq 2048 -o model.json`,
		Args:              oneModel,
		ValidArgsFunction: modelNames,
	}
	o := overrideFlags(cmd)
	layers := cmd.Flags().Bool("layers", false, "also print the table of layers")
	to := cmd.Flags().StringP("output", "o", "", "write the configuration to this `file` and print nothing else")
	asJSON := cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := model(a, args[0], *o)
		if err != nil {
			return err
		}
		if *to != "" {
			a.Warn(c.Warnings)
			if err := cli.ReplaceFile(*to, c.Write); err != nil {
				return cli.Usagef("", "--output: %v", err)
			}
			return nil
		}
		s := summaryOf(c)
		if *asJSON {
			if *layers {
				s.Table = c.Layers
			}
			return a.JSON(s)
		}
		s.print(a)
		if *layers {
			a.Println()
			return a.Print(layerTable(c))
		}
		return nil
	}
	return cmd
}

// modelSummary describes a model in the output.
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

func (s *modelSummary) print(a *cli.App) {
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
		a.Printf("%-14s%s\n", line[0], cli.Printable(line[1]))
	}
	for _, w := range s.Warnings {
		a.Printf("%-14s%s\n", "warning", cli.Printable(w))
	}
}

func orDefault(word string, list []string) string {
	if word == "" {
		return list[0]
	}
	return word
}

func layerTable(c *models.Config) *cli.Table {
	t := &cli.Table{Columns: []cli.Column{
		{Title: "#", Right: true}, {Title: "NAME", Least: 12, Share: 2}, {Title: "TYPE"}, {Title: "INPUTS", Least: 6, Share: 1},
		{Title: "OUTPUT", Least: 8, Share: 1}, {Title: "PARAMS", Right: true},
	}}
	for i := range c.Layers {
		l := &c.Layers[i]
		var from []string
		for _, at := range l.Inputs {
			from = append(from, strconv.Itoa(at))
		}
		t.Add(strconv.Itoa(i), l.Name, l.Type, strings.Join(from, ","), shapeText(l.Out), thousands(l.Parameters()))
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

// thousands formats a number like 1,234,567.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// millions formats a number like 25.6M.
func millions(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2fG", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
	return thousands(n)
}
