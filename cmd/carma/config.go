package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"carma/configs"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config [flags]",
		Short: "Print what is configured and where each value comes from",
		Long: `Print the configuration that carma daemon would run with, and where each value
comes from. Without --all it prints the most important keys and those that are
set. A value is taken from a flag, else from the environment (CARMA_DATA_DIR for
data-dir), else from ~/.config/carma/config.yaml, else from
/etc/carma/config.yaml. The flags of carma daemon are taken too, to see what
they would change.`,
		Args: noArgs,
	}
	asJSON := addJSON(cmd)
	example := cmd.Flags().Bool("example", false, "print a file with every key, its default and what it does")
	all := cmd.Flags().Bool("all", false, "print every key")
	addDaemonFlags(cmd.Flags())
	for _, name := range configs.Keys() {
		if f := cmd.Flags().Lookup(name); f != nil {
			f.Hidden = true // carma daemon --help has them
		}
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *example {
			fmt.Fprint(a.out, configs.Example)
			return nil
		}
		config, from, err := configs.Load(cmd.Flags())
		if err != nil {
			return err
		}
		settings := configs.Settings(config, from)
		if *asJSON {
			return a.json(settings)
		}
		left := 0
		t := &table{columns: []column{{title: "KEY"}, {title: "VALUE"}, {title: "FROM"}}}
		for _, s := range settings {
			if !*all && !s.First && !s.Set() {
				left++
				continue
			}
			value := s.Value
			if value == "" {
				value = `""`
			}
			t.add(s.Key, value, s.Origin.String())
		}
		if err := t.write(a.out, 0); err != nil || left == 0 {
			return err
		}
		a.say("%d more keys have their default; --all prints them, --example says what each does", left)
		return nil
	}
	return cmd
}
