package server

import (
	"fmt"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/settings"
	"carma/configs"
)

// Config returns the command carma config.
func Config(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config [flags]",
		GroupID: cli.GroupServer,
		Short:   "Print what is configured and where each value comes from",
		Long: `Print the configuration that carma daemon would run with, and where each value
comes from. Without --all it prints the most important keys and those that are
set.

A value comes from the first of these that has it: a flag, the environment
(CARMA_DATA_DIR for data-dir), ~/.config/carma/config.yaml,
/etc/carma/config.yaml. The flags of carma daemon can be given here too, to see
their effect.`,
		Args: cli.NoArgs,
	}
	asJSON := cli.JSONFlag(cmd)
	example := cmd.Flags().Bool("example", false, "print a file with every key, its default and what it does")
	all := cmd.Flags().Bool("all", false, "print every key")
	cli.DaemonFlags(cmd.Flags())
	for _, name := range settings.Keys() {
		if f := cmd.Flags().Lookup(name); f != nil {
			f.Hidden = true // carma daemon --help lists them
		}
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *example {
			fmt.Fprint(a.Out, configs.Example)
			return nil
		}
		config, from, err := settings.Load(cmd.Flags())
		if err != nil {
			return err
		}
		list := settings.Settings(config, from)
		if *asJSON {
			return a.JSON(list)
		}
		left := 0
		t := &cli.Table{Columns: []cli.Column{{Title: "KEY"}, {Title: "VALUE"}, {Title: "FROM"}}}
		for _, s := range list {
			if !*all && !s.First && !s.Set() {
				left++
				continue
			}
			value := s.Value
			if value == "" {
				value = `""`
			}
			t.Add(s.Key, value, s.Origin.String())
		}
		if err := t.Write(a.Out, 0); err != nil || left == 0 {
			return err
		}
		a.Say("%d more keys have their default; --all prints them, --example says what each does", left)
		return nil
	}
	return cmd
}
