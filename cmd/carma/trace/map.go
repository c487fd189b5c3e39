package trace

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/configs/traces"
	"carma/configs/traces/arrivals"
	"carma/configs/traces/joblog"
	"carma/configs/traces/mixes"
)

func mapCommand(a *cli.App) *cobra.Command {
	var o traces.MapOptions
	var skipBroken bool
	cmd := &cobra.Command{
		Use:   "map ARRIVALS [flags]",
		Short: "Make a trace of arrivals: give each a workload of the catalogue",
		Long: `Give each arrival of a sample, a log or a trace a workload of the catalogue, and
write a trace that carma replay plays.

carma draws a class by the weights of --mix, then a workload of that class, each
equally likely. Light workloads run under 10 minutes alone, medium ones up to an
hour, heavy ones longer or on several GPUs. Named mixes, as in the original's
traces: default is 30/60/10, mix-90 is 65/27/8, heavy-60 is 0/83/17.

With --match, an arrival gets the workload with the nearest number of GPUs and
then the nearest run time. With --load, all gaps are stretched or shrunk by one
factor, as by carma trace generate.`,
		Example: `  carma trace map sample.csv --seed 1 --out trace.yaml
  carma trace map sample.csv --mix heavy-60 --out trace.yaml
  carma trace map sample.csv --match --out trace.yaml`,
		Args: oneInput,
	}
	flags := cmd.Flags()
	mixFlag(cmd, &o.Mix)
	loaded := loadFlags(flags, &o.Load, &o.GPUs)
	flags.BoolVar(&o.Match, "match", false, "take the nearest workload by GPUs and run time")
	seedFlag(flags, &o.Seed)
	campaignFlag(cmd, &o.Campaign)
	flags.StringVar(&o.Name, "name", "", "the trace's `name` (default: that of the input)")
	flags.BoolVar(&skipBroken, "skip-broken", false, "leave out broken entries of the input")
	out := addOut(cmd, "the trace")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.Match && flags.Changed("mix") {
			return cli.Usagef("leave one out", "--match and --mix: a workload is matched or drawn")
		}
		if err := loaded(); err != nil {
			return err
		}
		if err := out.check(args); err != nil {
			return err
		}
		l, err := readLoad(a, args[0], skipBroken)
		if err != nil {
			return err
		}
		o.Source = fmt.Sprintf("%s (%s)", l.Name, l.Format)
		if o.Name == "" {
			o.Name, _, _ = strings.Cut(l.Name, ".")
		}
		t, err := traces.Map(l.List, o)
		if err != nil {
			return cli.Usagef("", "%s: %v", l.Name, err)
		}
		told, err := write(a, out, func(w io.Writer) error { return traces.Write(w, t) })
		if err != nil {
			return err
		}
		return tellMapped(told, t, l.List, o)
	}
	return cmd
}

// tellMapped prints the mapped trace's figures beside its arrivals'.
func tellMapped(w io.Writer, t traces.Trace, from arrivals.List, o traces.MapOptions) error {
	list, err := t.Arrivals()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: %s; load %.2f on %d GPUs\n", cli.Printable(t.Name), classCounts(list), list.Load(o.GPUs), o.GPUs)
	if len(from.RunTimes()) < len(from.Arrivals) {
		return nil
	}
	if o.Match {
		fmt.Fprintf(w, "the same number of GPUs for %d of %d\n", sameGPUs(list, from), len(list.Arrivals))
	}
	fmt.Fprintln(w)
	return writeFidelity(w, list, from, "TRACE", "ARRIVALS")
}

func sameGPUs(a, b arrivals.List) int {
	n := 0
	for i := range a.Arrivals {
		if a.Arrivals[i].GPUs == b.Arrivals[i].GPUs {
			n++
		}
	}
	return n
}

// classCounts returns the numbers of light, medium and heavy tasks.
func classCounts(l arrivals.List) string {
	var counts [3]int
	for _, a := range l.Arrivals {
		if a.RunTime != joblog.Unknown {
			counts[mixes.ClassOf(a.GPUs, a.RunTime)]++
		}
	}
	parts := make([]string, len(counts))
	for _, c := range mixes.Classes {
		parts[c] = fmt.Sprintf("%d %s", counts[c], c)
	}
	return fmt.Sprintf("%d tasks, %s", len(l.Arrivals), strings.Join(parts, ", "))
}
