package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/configs/traces/mixes"
)

func (a *app) traceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace COMMAND",
		Short: "Make traces: from public logs, from the original's, by drawing",
		Long: `Look at the logs of clusters, cut samples out of them, and make traces that
carma replay plays. A log is the Philly job log (JSON) or that of a Helios
cluster (CSV), in the form in which they are published; docs/traces.md has more.`,
		Example: `  carma trace stats cluster_job_log
  carma trace sample cluster_job_log --start 2017-10-03 --tasks 60 --out a.csv
  carma trace map a.csv --seed 1 --out a.yaml
  carma replay a.yaml --policy carma`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	cmd.AddCommand(a.traceStatsCommand(), a.traceSampleCommand(), a.traceMapCommand(), a.traceConvertCommand(), a.traceGenerateCommand())
	for _, c := range cmd.Commands() {
		c.DisableFlagsInUseLine = true
	}
	return cmd
}

// oneInput checks that one file is named.
func oneInput(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return usagef("write for example: "+strings.TrimPrefix(strings.Split(cmd.Example, "\n")[0], "  "), "it takes one file, not %d", len(args))
	}
	return nil
}

// outFlag is where a command puts what it makes.
type outFlag struct {
	flags *pflag.FlagSet
	path  string // empty: stdout
}

func addOut(cmd *cobra.Command, what string) *outFlag {
	o := &outFlag{flags: cmd.Flags()}
	o.flags.StringVar(&o.path, "out", "", "write "+what+" to this `file` (default: to stdout)")
	return o
}

// check refuses, before there is work, what could not be written after it.
func (o *outFlag) check(inputs []string) error {
	if !o.flags.Changed("out") {
		return nil
	}
	if o.path == "" {
		return usagef("leave it out to write to stdout", "--out: the file has no name")
	}
	if err := writable(&o.path, inputs); err != nil {
		return usagef("", "--out: %v", err)
	}
	return nil
}

// write writes to the file or to stdout. What the command tells besides then
// goes to the other of stdout and stderr that is returned.
func (a *app) write(o *outFlag, write func(io.Writer) error) (told io.Writer, err error) {
	if o.path == "" {
		return a.err, write(a.out)
	}
	if err := replaceFile(o.path, write); err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	return a.out, nil
}

// mixFlag takes weights of classes.
func mixFlag(cmd *cobra.Command, to *mixes.Mix) {
	*to = mixes.Default
	cmd.Flags().Var(&parsed[mixes.Mix]{to: to, kind: "light/medium/heavy", parse: mixes.Parse, text: "30/60/10"},
		"mix", "weights of light (under 10 min), medium and heavy tasks (over 1 h or on several GPUs); or "+strings.Join(mixes.Names(), ", "))
	complete(cmd, "mix", words(mixes.Names()))
}

// seedFlag takes the seed of what is drawn.
func seedFlag(flags *pflag.FlagSet, to *uint64) {
	flags.Uint64Var(to, "seed", 1, "`seed` of what is drawn: the same seed gives the same result")
}

// campaignFlag takes the measurements that run times come from.
func campaignFlag(cmd *cobra.Command, to *string) {
	choiceFlag(cmd.Flags(), to, []string{"v1", "v2"}, "campaign", "measurements that run times and memory come from: v1 or v2 (default: v2)")
}

// open opens a file to read; - is the input.
func (a *app) open(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(a.in), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be read: %w", path, errors.Unwrap(err))
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, fmt.Errorf("%s: a folder, not a file", path)
	}
	return f, nil
}
