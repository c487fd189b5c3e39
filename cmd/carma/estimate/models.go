package estimate

import (
	"cmp"
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/cmd/carma/cli"
	"carma/configs/models"
	"carma/estimator/networks"
	"carma/estimator/networks/named"
	"carma/internal/suggest"
)

// Models returns the command carma models.
func Models(a *cli.App) *cobra.Command {
	return cli.Parent(&cobra.Command{
		Use:     "models COMMAND",
		GroupID: cli.GroupMemory,
		Short:   "List and show the networks that tasks train",
	}, modelsListCommand(a), modelsShowCommand(a))
}

func modelsListCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "List the models of the catalogue",
		Args:  cli.NoArgs,
	}
	asJSON := cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t := &cli.Table{Columns: []cli.Column{{Title: "NAME"}, {Title: "FAMILY"}, {Title: "PARAMS", Right: true}, {Title: "BATCH", Right: true}, {Title: "ORIGIN"}}}
		list := []modelSummary{}
		for _, name := range named.All() {
			c, err := named.Build(name, models.Overrides{})
			if err != nil {
				return err
			}
			s := summaryOf(c)
			s.Name = name
			list = append(list, s)
			t.Add(name, string(s.Family), millions(s.Params), strconv.Itoa(s.Train.Batch), s.Origin)
		}
		if *asJSON {
			return a.JSON(list)
		}
		return a.Print(t)
	}
	return cmd
}

// overrideFlags adds the flags that change a configuration: the settings of trainings by
// their short names, and the two that are separate in carma run.
func overrideFlags(cmd *cobra.Command) *models.Overrides {
	o := new(models.Overrides)
	f := cmd.Flags()
	cli.CountFlag(f, &o.Batch, 1, "batch", "samples of one step, on all GPUs together")
	cli.CountFlag(f, &o.GPUs, 1, "gpus", "GPUs of the training")
	runs := map[string]string{"batch-size": "batch"} // names in carma run
	for _, s := range models.Settings() {
		name := cmp.Or(s.Short, s.Name)
		runs[s.Name] = name
		flag := f.VarPF(&cli.Parsed[models.Overrides]{To: o, Kind: cmp.Or(s.Value, "bool"), Parse: func(text string) (models.Overrides, error) {
			changed := *o
			err := s.Set(&changed, text)
			return changed, err
		}}, name, "", s.Help)
		if s.Value == "" {
			flag.NoOptDefVal = "true"
		}
		if s.Words != nil {
			cli.Complete(cmd, name, cli.Words(s.Words))
		}
	}
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(cmp.Or(runs[name], name))
	})
	return o
}

// model returns the model that ref names: a model of the catalogue, a configuration file
// or a config.json; "-" is standard input.
func model(a *cli.App, ref string, o models.Overrides) (*models.Config, error) {
	var c *models.Config
	var err error
	if ref == "-" {
		c, err = networks.Read("stdin", a.In, o)
	} else {
		c, err = networks.Find(ref, o)
	}
	if errors.Is(err, fs.ErrNotExist) {
		hint := "carma models list shows those of the catalogue"
		if near := suggest.Near(ref, named.All()); len(near) > 0 {
			hint = "nearest: " + strings.Join(near[:min(3, len(near))], ", ")
		}
		return nil, cli.Usagef(hint, "%s: no such file, and no model of that name", ref)
	}
	if err != nil {
		return nil, cli.Usagef("", "%s", err.Error())
	}
	return c, nil
}

// oneModel checks that one model is named.
func oneModel(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return cli.Usagef("write for example: "+cmd.CommandPath()+" model.json", "it takes one model, not %d", len(args))
	}
	return nil
}

// modelNames completes a model: the names in the catalogue, and files.
func modelNames(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	names, _ := cli.Words(named.All())(cmd, args, start)
	return names, cobra.ShellCompDirectiveDefault
}
