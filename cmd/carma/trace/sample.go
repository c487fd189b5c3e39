package trace

import (
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/configs/traces/arrivals"
	"carma/configs/traces/joblog"
	"carma/configs/traces/load"
	"carma/configs/traces/mixes"
	"carma/internal/suggest"
	"carma/internal/units"
)

// sampleFlags select a part of a log.
type sampleFlags struct {
	arrivals.Choice
	window     arrivals.Window // without its start, which is in start
	start      string
	seed       uint64
	skipBroken bool
}

func sampleCommand(a *cli.App) *cobra.Command {
	var f sampleFlags
	cmd := &cobra.Command{
		Use:   "sample LOG --length TIME|--tasks N [flags]",
		Short: "Cut a window out of a log",
		Long: `Cut a window out of a Philly or Helios log, a Sia table, or any other load, and
write its arrivals, GPUs and run times as a table that carma trace map reads.

It takes jobs that ended well, ran on GPUs and have a known run time; with
--failed and --killed also jobs that failed or were killed.

It prints how similar the sample is to its source: all jobs of the log that it
could have taken. Gaps and run times: Kolmogorov-Smirnov distance, the largest
difference between the two cumulative shares; CHANCE is the value exceeded in 5
of 100 cases if both are drawn alike. GPUs: total variation distance, half the
sum of the differences between the shares of each number of GPUs. 0 is equal, 1
nothing in common.`,
		Example: `  carma trace sample cluster_job_log --tasks 60 --out sample.csv
  carma trace sample cluster_log.csv --start 2020-06-09 --length 6h --failed
  carma trace sample cluster_log.csv --start random --seed 7 --tasks 60`,
		Args: oneInput,
	}
	flags := cmd.Flags()
	flags.StringVar(&f.start, "start", "", "begin at this `time`: 2017-10-03, 2017-10-03 09:30:00, 36h after the first job, or random (default: with the first job)")
	cli.DurationFlag(flags, &f.window.Length, "length", "take jobs that arrive within this `time`")
	cli.CountFlag(flags, &f.window.Tasks, 1, "tasks", "take at most N tasks")
	seedFlag(flags, &f.seed)
	flags.BoolVar(&f.Failed, "failed", false, "also take jobs that failed")
	flags.BoolVar(&f.Killed, "killed", false, "also take jobs that were killed")
	cli.CountFlag(flags, &f.MaxGPUs, 1, "max-gpus", "leave out jobs on more GPUs than this")
	flags.StringVar(&f.User, "user", "", "take only jobs of this `user`; in a Sia table, of this virtual cluster")
	flags.BoolVar(&f.skipBroken, "skip-broken", false, "leave out broken entries of the log")
	out := addOut(cmd, "the sample")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if f.window.Length == 0 && f.window.Tasks == 0 {
			return cli.Usagef("write for example --tasks 60 or --length 6h", "neither --tasks nor --length")
		}
		if err := out.check(args); err != nil {
			return err
		}
		l, err := readLoad(a, args[0], f.skipBroken)
		if err != nil {
			return err
		}
		return sample(a, f, l, out)
	}
	return cmd
}

func sample(a *cli.App, f sampleFlags, l *load.Load, out *outFlag) error {
	if users := l.List.Users(); f.User != "" && !slices.Contains(users, f.User) {
		if len(users) == 0 {
			return cli.Usagef("leave --user out", "%s: names no users", l.Name)
		}
		return cli.Usagef("", "%s: no user %q; nearest: %s", l.Name, f.User, suggest.Names(f.User, users, 1)[0])
	}
	source, leaves := l.List.Choose(f.Choice)
	left := strings.Join(leaves, ", ")
	if len(source.Arrivals) == 0 {
		return cli.Usagef("see --failed, --killed and --max-gpus", "%s: nothing could be taken; left out: %s", l.Name, left)
	}
	start, err := f.from(source)
	if err != nil {
		return err
	}
	window := f.window
	window.Start = start
	s, err := source.Sample(window)
	if err != nil {
		return cli.Usagef("choose another --start", "%s: %v", l.Name, err)
	}
	remark := fmt.Sprintf("%d tasks of %s (%s)", len(s.Arrivals), l.Name, l.Format)
	if f.User != "" {
		remark += ", user " + f.User
	}
	if !s.First.IsZero() {
		remark += " from " + joblog.FormatTime(s.First)
	}
	told, err := write(a, out, func(w io.Writer) error { return arrivals.Write(w, remark, s) })
	if err != nil {
		return err
	}
	fmt.Fprintf(told, "%s, arriving within %s\n", remark, cli.Age(s.Span()))
	fmt.Fprintf(told, "source: %d jobs; left out: %s\n\n", len(source.Arrivals), leftOut(l, left))
	return writeFidelity(told, s, source, "SAMPLE", "SOURCE")
}

// leftOut lists the entries that a load leaves out, and more.
func leftOut(l *load.Load, more string) string {
	var all []string
	if l.NoGPUs > 0 {
		all = append(all, fmt.Sprintf("%d without GPUs", l.NoGPUs))
	}
	if l.Broken.Count > 0 {
		all = append(all, fmt.Sprintf("%d broken", l.Broken.Count))
	}
	if more != "" {
		all = append(all, more)
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, ", ")
}

// from returns the beginning of the sample, since the first arrival of its source.
func (f sampleFlags) from(source arrivals.List) (time.Duration, error) {
	if f.start == "" {
		return 0, nil
	}
	if f.start == "random" {
		first := mixes.NewDice(f.seed).Below(source.Starts(f.window))
		return source.Arrivals[first].At, nil
	}
	if d, err := units.ParseTime(f.start); err == nil {
		return d, nil
	}
	text := f.start
	if len(text) == len("2017-10-03") {
		text += " 00:00:00"
	}
	at, err := joblog.ParseTime(text)
	switch {
	case err != nil:
		return 0, cli.Usagef("", "--start: %q is not a time; write for example 2017-10-03, \"2017-10-03 09:30:00\", 36h or random", f.start)
	case source.First.IsZero():
		return 0, cli.Usagef("", "--start: this load has no dates; write for example 36h")
	case at.Sub(source.First) > source.Span():
		return 0, cli.Usagef("nearest: "+joblog.FormatTime(source.First.Add(source.Span())), "--start: %s is after the last job", f.start)
	}
	return max(0, at.Sub(source.First)), nil
}

// writeFidelity prints the similarity of two loads.
func writeFidelity(w io.Writer, a, b arrivals.List, first, second string) error {
	d := arrivals.Compare(a, b)
	t := &cli.Table{Columns: []cli.Column{{Title: "MEDIAN"}, {Title: first, Right: true}, {Title: second, Right: true}, {Title: "DISTANCE", Right: true}, {Title: "CHANCE", Right: true}, {Title: "WHICH"}}}
	pair := func(x []time.Duration) string {
		if len(x) == 0 {
			return "-"
		}
		return cli.Age(arrivals.SpreadOf(x).Median)
	}
	number := func(v float64) string { return fmt.Sprintf("%.3f", v) }
	t.Add("gap", pair(a.Gaps()), pair(b.Gaps()), number(d.Gaps), number(d.ChanceGaps), "Kolmogorov-Smirnov")
	t.Add("run time", pair(a.RunTimes()), pair(b.RunTimes()), number(d.RunTimes), number(d.ChanceRunTimes), "Kolmogorov-Smirnov")
	t.Add("GPUs", medianGPUs(a), medianGPUs(b), number(d.GPUs), "", "total variation")
	return t.Write(w, 0)
}

func medianGPUs(l arrivals.List) string {
	all := make([]int, len(l.Arrivals))
	for i := range l.Arrivals {
		all[i] = l.Arrivals[i].GPUs
	}
	sort.Ints(all)
	return fmt.Sprint(all[(len(all)-1)/2])
}
