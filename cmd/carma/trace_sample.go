package main

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carma/configs/traces/arrivals"
	"carma/configs/traces/joblog"
	"carma/configs/traces/load"
	"carma/configs/traces/mixes"
)

// sampleFlags say what is taken out of a log.
type sampleFlags struct {
	start          string
	length         time.Duration
	tasks          int
	seed           uint64
	failed, killed bool
	maxGPUs        int
	skipBroken     bool
}

func (a *app) traceSampleCommand() *cobra.Command {
	var f sampleFlags
	cmd := &cobra.Command{
		Use:   "sample LOG --length TIME|--tasks N [flags]",
		Short: "Cut a window out of a log",
		Long: `Cut a window out of a Philly or Helios log, or any other load, and write its
arrivals, GPUs and run times as a table that carma trace map reads.

It takes jobs that ended well, ran on GPUs and have a known run time; with
--failed and --killed also jobs that failed or were killed.

It prints how similar the sample is to its source, all jobs of the log that it
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
	durationFlag(flags, &f.length, "length", "take what arrives within this `time`")
	countFlag(flags, &f.tasks, 1, "tasks", "take so many tasks at most")
	seedFlag(flags, &f.seed)
	flags.BoolVar(&f.failed, "failed", false, "take failed jobs, too")
	flags.BoolVar(&f.killed, "killed", false, "take jobs that were killed, too")
	countFlag(flags, &f.maxGPUs, 1, "max-gpus", "leave out jobs on more GPUs")
	flags.BoolVar(&f.skipBroken, "skip-broken", false, "leave out broken entries of the log")
	out := addOut(cmd, "the sample")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if f.length == 0 && f.tasks == 0 {
			return usagef("write for example --tasks 60 or --length 6h", "neither --tasks nor --length")
		}
		if err := out.check(args); err != nil {
			return err
		}
		l, err := a.readLoad(args[0], f.skipBroken)
		if err != nil {
			return err
		}
		return a.sample(f, l, out)
	}
	return cmd
}

func (a *app) sample(f sampleFlags, l *load.Load, out *outFlag) error {
	source, left := f.take(l.List)
	if len(source.Arrivals) == 0 {
		return usagef("see --failed, --killed and --max-gpus", "%s: nothing could be taken; left out: %s", l.Name, left)
	}
	start, err := f.from(source)
	if err != nil {
		return err
	}
	s, err := source.Sample(arrivals.Window{Start: start, Length: f.length, Tasks: f.tasks})
	if err != nil {
		return usagef("choose another --start", "%s: %v", l.Name, err)
	}
	remark := fmt.Sprintf("%d tasks of %s (%s)", len(s.Arrivals), l.Name, l.Format)
	if !s.First.IsZero() {
		remark += " from " + joblog.FormatTime(s.First)
	}
	told, err := a.write(out, func(w io.Writer) error { return arrivals.Write(w, remark, s) })
	if err != nil {
		return err
	}
	fmt.Fprintf(told, "%s, arriving within %s\n", remark, age(s.Span()))
	fmt.Fprintf(told, "source: %d jobs; left out: %s\n\n", len(source.Arrivals), leftOut(l, left))
	return writeFidelity(told, s, source, "SAMPLE", "SOURCE")
}

// take is the part of a list that may be sampled, and what was left out.
func (f sampleFlags) take(list arrivals.List) (arrivals.List, string) {
	out := arrivals.List{First: list.First}
	var failed, killed, other, unknown, large int
	for _, one := range list.Arrivals {
		switch {
		case one.State == joblog.Failed && !f.failed:
			failed++
		case one.State == joblog.Killed && !f.killed:
			killed++
		case one.State == joblog.Other:
			other++
		case one.RunTime == joblog.Unknown:
			unknown++
		case f.maxGPUs > 0 && one.GPUs > f.maxGPUs:
			large++
		default:
			out.Arrivals = append(out.Arrivals, one)
		}
	}
	out.Sort()
	var left []string
	for _, c := range []struct {
		n    int
		what string
	}{
		{failed, "failed"}, {killed, "killed"}, {other, "suspended"}, {unknown, "without a known run time"}, {large, fmt.Sprintf("on more than %d GPUs", f.maxGPUs)},
	} {
		if c.n > 0 {
			left = append(left, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	return out, strings.Join(left, ", ")
}

// leftOut adds what was never in the list.
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

// from is where the sample begins, since the first arrival of its source.
func (f sampleFlags) from(source arrivals.List) (time.Duration, error) {
	if f.start == "" {
		return 0, nil
	}
	if f.start == "random" {
		return f.random(source), nil
	}
	if d, err := time.ParseDuration(f.start); err == nil && d >= 0 {
		return d, nil
	}
	text := f.start
	if len(text) == len("2017-10-03") {
		text += " 00:00:00"
	}
	at, err := joblog.ParseTime(text)
	switch {
	case err != nil:
		return 0, usagef("", "--start: %q is not a time; write for example 2017-10-03, \"2017-10-03 09:30:00\", 36h or random", f.start)
	case source.First.IsZero():
		return 0, usagef("", "--start: this load has no dates; write for example 36h")
	case at.Sub(source.First) > source.Span():
		return 0, usagef("nearest: "+joblog.FormatTime(source.First.Add(source.Span())), "--start: %s is after the last job", f.start)
	}
	return max(0, at.Sub(source.First)), nil
}

// random is the arrival of one of the tasks after which there are enough.
func (f sampleFlags) random(source arrivals.List) time.Duration {
	n := len(source.Arrivals)
	if f.tasks > 0 {
		n = max(1, n-f.tasks+1)
	}
	if f.length > 0 {
		most := source.Span() - f.length
		n = max(1, min(n, sort.Search(n, func(i int) bool { return source.Arrivals[i].At > most })))
	}
	return source.Arrivals[mixes.NewDice(f.seed).Below(n)].At
}

// writeFidelity prints how like each other two loads are.
func writeFidelity(w io.Writer, a, b arrivals.List, first, second string) error {
	d := arrivals.Compare(a, b)
	t := &table{columns: []column{{title: "MEDIAN"}, {title: first, right: true}, {title: second, right: true}, {title: "DISTANCE", right: true}, {title: "CHANCE", right: true}, {title: "WHICH"}}}
	pair := func(x []time.Duration) string {
		if len(x) == 0 {
			return "-"
		}
		return age(arrivals.SpreadOf(x).Median)
	}
	number := func(v float64) string { return fmt.Sprintf("%.3f", v) }
	t.add("gap", pair(a.Gaps()), pair(b.Gaps()), number(d.Gaps), number(d.ChanceGaps), "Kolmogorov-Smirnov")
	t.add("run time", pair(a.RunTimes()), pair(b.RunTimes()), number(d.RunTimes), number(d.ChanceRunTimes), "Kolmogorov-Smirnov")
	t.add("GPUs", medianGPUs(a), medianGPUs(b), number(d.GPUs), "", "total variation")
	return t.write(w, 0)
}

func medianGPUs(l arrivals.List) string {
	all := make([]int, len(l.Arrivals))
	for i := range l.Arrivals {
		all[i] = l.Arrivals[i].GPUs
	}
	sort.Ints(all)
	return fmt.Sprint(all[(len(all)-1)/2])
}
