package main

import (
	"strings"

	"github.com/spf13/cobra"

	"carma/configs/servers"
	"carma/configs/traces"
	"carma/mapper/sim"
	"carma/mapper/sim/study"
)

func (a *app) replayCommand() *cobra.Command {
	var measured pairsFlags
	cmd := &cobra.Command{
		Use:   "replay TRACE... [flags]",
		Short: "Run the tasks of a trace, in virtual time or live, and measure",
		Long: `Run traces through carma's own scheduler in virtual time, on modelled GPUs, and
print a table for each with a row per policy. Nothing else is needed: no daemon,
no containers, no GPU. Equal input gives equal output.

TRACE is a file, or the name of one that ships with carma, or generated-SEED or
generated-SEEDxTASKS: 60 or so many tasks drawn from that seed, 30 % light, 60 %
medium and 10 % heavy ones, with arrival gaps of Microsoft's Philly trace.

JCT is from submission to the last end; execution is running in the attempt that
finished, lost running in failed ones, waiting the rest; makespan is from the
first submission to the last end. JCT, WAIT and EXEC are means, LOST is in GPU
time, WORST the longest execution of any task relative to running alone, MJ the
energy, SMACT and MEM means over time and GPUs, RATIO the makespan relative to
Exclusive: one task per GPU, strictly in order. No schedule beats the lower
bound. With several traces a last table has geometric means of the ratios.

--policy takes policies, each with every estimator of --estimator, and presets,
which are the published policies with all their rules: carma replay --presets.
Estimators: catalogue is the daemon's; oracle the true peak; none books nothing;
declared what the trace declares; horus, faketensor and gpumemnet the published
estimates. carma is carma's own, the upper bound at 95 % from the network alone,
and computed:NAME another one of carma estimate in the same way; a workload that
has no such estimate gets a whole GPU.
Sharing: mps runs kernels of several tasks at once, as fitted to measured pairs;
time-slicing, without MPS, lets tasks take turns once they fill the GPU's time.

With --live, submit every task of one trace to the daemon at its time of
arrival, as a container, and wait for all. The times are the daemon's: a
simulated server runs --speed times faster than the clock.

With --html, also write a report: one file, which needs no network, with the
table and with charts of what ran where, memory, SM activity, power and queue
over time, and times and slowdowns of the tasks. With --csv, write a line for
each task under each policy.

With --pairs, run nothing: print how far the interference model is off on pairs
of tasks that were measured together. The file has columns solo_profile_a and
solo_profile_b, overlap_speed_a and overlap_speed_b or else speed_a and speed_b;
that of --profiles has workload_id, smact_mean and drama_mean and, for the time
of a step, model, dataset, batch_size, epochs and train_loop_s. Others are
passed over. Speeds are relative to running alone.

With --set, change rules of the policies, but not of presets: order=fair,
slot=2h, quota-gpus=2 and so on (carma config lists the keys). --policy ablation
is policy carma without one of its ingredients in each row, --policy estimators
policies magm and carma under each estimator.

With --journal, replay what a daemon has recorded through the same scheduler,
and check that it decides the same, as carma history verify does.

With --check, print which bounds of a file the result does not keep, and which
values moved since --record last kept them there. With --published, replay what
CARMA and AEGIS published and print both.

Exits with 1 when a task did not succeed or a bound does not hold.`,
		Example: `  carma replay philly-t1-60 --policy exclusive,magm
  carma replay philly-t1-60 --policy magm,carma,OR-MAGM --estimator oracle,none
  carma replay philly-t1-60 philly-t2-60 --gpu-count 3 --json
  carma replay philly-heavy-60 --html report.html --csv tasks.csv
  carma replay philly-mix-90 --policy carma --set order=fair --set slot=2h
  carma replay --check test/replay-bounds.yaml
  carma replay configs/traces/philly-t1-60.yaml --live --speed 600
  carma replay --pairs mapper/sim/fit/pairs.csv`,
		Args: func(cmd *cobra.Command, args []string) error {
			if measured.given(cmd) {
				return measured.check(cmd, args)
			}
			if len(args) == 0 && !needsNoTrace(cmd) {
				return usagef("one of "+strings.Join(traces.Names(), ", ")+" or a file", "it takes a trace")
			}
			return noEmpty(args)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
			names, _ := words(traces.Names())(cmd, args, start)
			return names, cobra.ShellCompDirectiveDefault // files too
		},
	}
	flags := cmd.Flags()
	var virtual virtualFlags
	flags.StringVar(&virtual.Policies, "policy", "", "`policies` and presets, separated by commas (default: all policies); with --live: only if the daemon's is this one")
	flags.StringVar(&virtual.gpus, "gpus", "sim:"+servers.Default, "the `server`: sim:NAME or sim:FILE")
	countFlag(flags, &virtual.count, 1, "gpu-count", "so many GPUs of the server's kind (default: as it has)")
	flags.StringVar(&virtual.Estimator, "estimator", study.Estimators[0], "what is known of a task's memory, separated by commas: "+strings.Join(study.Estimators, ", "))
	flags.DurationVar(&virtual.startUp, "start-up", study.StartUp, "`time` from a launch until the container runs")
	flags.StringArrayVar(&virtual.Set, "set", nil, "change a rule of the policies, `KEY=VALUE` as in the configuration, for example order=fair; may be repeated")
	flags.DurationVar(&virtual.checkpoint, "checkpoint", 0, "`time` after which tasks save their work, to go on from there (default: never)")
	countFlag(flags, &virtual.LookAhead, 1, "look-ahead", "tasks that do not fit and are passed over, for policies (default: as the policy has it; 1: strictly in order)")
	flags.StringVar(&virtual.check, "check", "", "compare the result with the bounds in this `file`; without TRACE or --policy, replay what it names")
	flags.BoolVar(&virtual.record, "record", false, "with --check: keep in the file what the values came to")
	published := flags.Bool("published", false, "print ours beside what CARMA and AEGIS published, and end")
	journal := flags.String("journal", "", "replay the journal in this daemon's `folder`, check that every decision is the recorded one, and end")
	listPresets := flags.Bool("presets", false, "list the presets and end")
	files := addFileFlags(flags)
	virtual.sharing = sim.MPS.String()
	choiceFlag(flags, &virtual.sharing, sim.SharingNames(), "sharing", "how tasks share a GPU: "+strings.Join(sim.SharingNames(), ", ")+" (default: "+virtual.sharing+")")
	live := flags.Bool("live", false, "send the tasks to the daemon as containers")
	var l liveFlags
	flags.Float64Var(&l.speed, "speed", 0, "with --live: set a simulated server to this `speed` meanwhile (default: as it is)")
	flags.StringVar(&l.image, "image", "carma/simtask:latest", "with --live: the tasks' `image`; its argument is the workload's name")
	flags.StringVar(&l.prefix, "name", "", "with --live: begin the tasks' names with this (default: the trace's name)")
	measured.add(cmd)
	asJSON := addJSON(cmd)
	complete(cmd, "policy", policiesAndPresets)
	complete(cmd, "estimator", words(study.Estimators))
	complete(cmd, "sharing", words(sim.SharingNames()))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if measured.given(cmd) {
			return a.replayPairs(measured, *asJSON)
		}
		if err := oneMode(cmd, *live); err != nil {
			return err
		}
		switch {
		case *listPresets:
			return printPresets(a.out)
		case *published:
			return a.replayPublished(*asJSON)
		case flags.Changed("journal"):
			return a.verify(*journal, "journal", *asJSON)
		}
		if !*live {
			v, err := a.newVirtualReplay(virtual, args)
			if err != nil {
				return err
			}
			if err := files.check(args); err != nil {
				return err
			}
			v.files = files
			return a.replayVirtual(v, *asJSON)
		}
		l.policy = virtual.Policies
		return a.runLive(cmd, l, args, *asJSON)
	}
	return cmd
}

// policiesAndPresets completes --policy.
func policiesAndPresets(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	fit, directive := policies(cmd, args, start)
	for _, p := range study.Presets() {
		if strings.HasPrefix(p.Name, start) {
			fit = append(fit, p.Name+"\t"+p.Doc)
		}
	}
	return fit, directive
}
