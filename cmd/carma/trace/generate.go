package trace

import (
	"io"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/configs/traces"
)

func generateCommand(a *cli.App) *cobra.Command {
	o := traces.GenerateOptions{GPUs: 4}
	cmd := &cobra.Command{
		Use:   "generate [flags]",
		Short: "Draw a trace with gaps of the Philly trace, at a given load",
		Long: `Draw a trace. Gaps between arrivals are drawn, with replacement, from 200 of
Microsoft's Philly trace; workloads by the weights of --mix. --load L stretches
or shrinks all gaps by one factor, until the GPU time of all tasks alone is L
times that of --gpu-count GPUs from the first arrival to the last. Without
--load and --mix, carma replay knows the same trace as generated-SEEDxTASKS.`,
		Example: `  carma trace generate --tasks 60 --load 1.2 --out trace.yaml
  carma trace generate --seed 7 --mix heavy-60 --load 0.8 --gpu-count 8`,
		Args: cli.NoArgs,
	}
	flags := cmd.Flags()
	cli.CountFlag(flags, &o.Tasks, 1, "tasks", "number of tasks (default: 60)")
	loaded := loadFlags(flags, &o.Load, &o.GPUs)
	mixFlag(cmd, &o.Mix)
	seedFlag(flags, &o.Seed)
	out := addOut(cmd, "the trace")
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := loaded(); err != nil {
			return err
		}
		if err := out.check(nil); err != nil {
			return err
		}
		t, err := traces.Generate(o)
		if err != nil {
			return cli.Usagef("", "%v", err)
		}
		told, err := write(a, out, func(w io.Writer) error { return traces.Write(w, t) })
		if err != nil {
			return err
		}
		list, err := t.Arrivals()
		if err != nil {
			return err
		}
		return printLine(told, "%s: %s, arriving within %s; load %.4g on %d GPUs", t.Name, classCounts(list), cli.Age(list.Span()), list.Load(o.GPUs), o.GPUs)
	}
	return cmd
}
