// Package trace contains the command carma trace: it reads logs of clusters and makes
// traces. configs/traces contains the functions for them.
package trace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/cmd/carma/cli"
	"carma/configs/traces/mixes"
)

// Command returns the command carma trace.
func Command(a *cli.App) *cobra.Command {
	return cli.Parent(&cobra.Command{
		Use:     "trace COMMAND",
		GroupID: cli.GroupExperiments,
		Short:   "Make traces: from public logs, from the original's, by drawing",
		Long: `Look at the logs of clusters, cut samples out of them, and make traces that
carma replay plays. A log is the Philly job log (JSON) or the log of a Helios
cluster (CSV), as published, or a job table of Sia's simulator (CSV); each may
be compressed by gzip. docs/replay.md has more.`,
		Example: `  carma trace stats cluster_job_log
  carma trace sample cluster_job_log --start 2017-10-03 --tasks 60 --out a.csv
  carma trace map a.csv --seed 1 --out a.yaml
  carma replay a.yaml --policy carma`,
	}, statsCommand(a), sampleCommand(a), mapCommand(a), convertCommand(a), generateCommand(a))
}

// oneInput checks that one file is named.
func oneInput(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return cli.Usagef("write for example: "+strings.TrimPrefix(strings.Split(cmd.Example, "\n")[0], "  "), "it takes one file, not %d", len(args))
	}
	return nil
}

// outFlag is the destination of a command's output.
type outFlag struct {
	flags *pflag.FlagSet
	path  string // empty for stdout
}

func addOut(cmd *cobra.Command, what string) *outFlag {
	o := &outFlag{flags: cmd.Flags()}
	o.flags.StringVar(&o.path, "out", "", "write "+what+" to this `file` (default: to stdout)")
	return o
}

// check refuses an output that could not be written, before the work begins.
func (o *outFlag) check(inputs []string) error {
	if !o.flags.Changed("out") {
		return nil
	}
	if o.path == "" {
		return cli.Usagef("leave it out to write to stdout", "--out: the file has no name")
	}
	if err := cli.Writable(&o.path, inputs); err != nil {
		return cli.Usagef("", "--out: %v", err)
	}
	return nil
}

// write writes to the file or to stdout. told is the writer for the command's other
// messages: stdout or stderr, whichever is not used for the output.
func write(a *cli.App, o *outFlag, write func(io.Writer) error) (told io.Writer, err error) {
	if o.path == "" {
		return a.Err, write(a.Out)
	}
	if err := cli.ReplaceFile(o.path, write); err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	return a.Out, nil
}

// mixFlag adds the flag for weights of classes.
func mixFlag(cmd *cobra.Command, to *mixes.Mix) {
	*to = mixes.Default
	cmd.Flags().Var(&cli.Parsed[mixes.Mix]{To: to, Kind: "light/medium/heavy", Parse: mixes.Parse, Text: "30/60/10"},
		"mix", "weights of light (under 10 min), medium and heavy tasks (over 1 h or on several GPUs); or "+strings.Join(mixes.Names(), ", "))
	cli.Complete(cmd, "mix", cli.Words(mixes.Names()))
}

// seedFlag adds the flag for the seed of the random draws.
func seedFlag(flags *pflag.FlagSet, to *uint64) {
	flags.Uint64Var(to, "seed", 1, "`seed` of the random draws; the same seed gives the same result")
}

// campaignFlag adds the flag for the measurements from which run times come.
func campaignFlag(cmd *cobra.Command, to *string) {
	cli.ChoiceFlag(cmd.Flags(), to, []string{"v1", "v2"}, "campaign", "measurements of run times and memory: v1 or v2 (default: v2)")
}

// open opens a file to read; - is standard input.
func open(a *cli.App, path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(a.In), nil
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
