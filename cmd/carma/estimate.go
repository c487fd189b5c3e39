package main

import (
	"encoding/json"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"carma/configs"
	"carma/containers"
	"carma/estimator/probe"
)

func (a *app) estimateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "estimate --probe [flags] IMAGE [-- COMMAND...]",
		Short: "Find out what a task trains, without a GPU",
		Long: `Find out what a task trains, before it runs. With --probe its own program runs
for two training steps on the CPU: unchanged, in its image, without a GPU and
without network; mounts are read-only. PyTorch from 1.13 on is understood. The
configuration that was found can be written to a file and corrected by hand.`,
		Example: `  carma estimate --probe my/training:1 -- python train.py --batch-size 64
  carma estimate --probe -v ./data:/data -o net.json my/training:1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return usagef("write for example: carma estimate --probe my/training:1 -- python train.py", "no image named")
			}
			return nil
		},
		ValidArgsFunction: noCompletion,
	}
	o := probeOptions{}
	o.flags(cmd.Flags())
	probing := cmd.Flags().Bool("probe", false, "run the task's first steps on the CPU")
	output := cmd.Flags().StringP("output", "o", "", "write the configuration to a `file` (JSON)")
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !*probing {
			return usagef("add --probe", "nothing says how to estimate")
		}
		config, _, err := configs.Load(cmd.Flags())
		if err != nil {
			return err
		}
		found, err := o.probeConfig(cmd.Context(), config, args)
		switch failed, ok := errors.AsType[*probe.FailedError](err); {
		case ok:
			return errors.New("the probe found nothing: " + failed.Reason)
		case errors.Is(err, containers.ErrNotFound):
			return usagef("pull or build it first", "%v", err)
		case err != nil:
			return err
		}
		if *output != "" {
			data, err := json.MarshalIndent(found, "", "  ")
			if err != nil {
				return err
			}
			if err := os.WriteFile(*output, append(data, '\n'), 0o666); err != nil {
				return err
			}
		}
		if *asJSON {
			return a.json(found)
		}
		for _, line := range summary(found) {
			a.println(line)
		}
		return nil
	}
	return cmd
}
