package replay

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/cmd/carma/cli"
	"carma/configs/servers"
	"carma/mapper/sim"
	"carma/mapper/sim/study"
)

// virtualFlags contains the flags of a replay in virtual time, as typed.
type virtualFlags struct {
	study.Rules
	flags    *pflag.FlagSet
	gpus     string
	count    int
	startUp  time.Duration
	check    string // file of bounds, or empty
	record   bool
	machines int
	// checkpoint is the work after which a task saves its state, or 0 for never.
	checkpoint time.Duration
}

// addVirtualFlags adds the flags for traces and policies, and the conditions.
func addVirtualFlags(cmd *cobra.Command) *virtualFlags {
	flags := cmd.Flags()
	f := &virtualFlags{flags: flags}
	flags.StringVar(&f.Policies, "policy", "", "`policies` and presets, separated by commas (default: all policies); with --live: run only if this is the daemon's policy")
	flags.StringVar(&f.gpus, "gpus", "sim:"+servers.Default, "the `server`: sim:NAME or sim:FILE")
	cli.CountFlag(flags, &f.count, 1, "gpu-count", "number of GPUs, of the server's kind (default: the server's own number)")
	cli.CountFlag(flags, &f.machines, 1, "machines", "so many machines like the server, as in a cluster (default: 1)")
	flags.StringVar(&f.Estimator, "estimator", study.Estimators[0], "estimators of a task's memory, separated by commas: "+strings.Join(study.Estimators, ", "))
	f.startUp = study.StartUp
	cli.TimeFlag(flags, &f.startUp, "start-up", "", "`time` from a launch until the container runs")
	flags.StringArrayVar(&f.Set, "set", nil, "change a rule of the policies, `KEY=VALUE` as in the configuration, for example order=fair; may be repeated")
	cli.TimeFlag(flags, &f.checkpoint, "checkpoint", "", "`time` between two checkpoints of a task, from which a stopped run goes on (default: none)")
	cli.CountFlag(flags, &f.LookAhead, 1, "look-ahead", "for policies: how many tasks that do not fit may be passed over (default: the policy's; 1: strictly in order)")
	flags.StringVar(&f.check, "check", "", "compare the result with the bounds in this `file`; without TRACE or --policy, replay those of the file")
	flags.BoolVar(&f.record, "record", false, "with --check: keep the values of this replay in the file")
	addConditionFlags(flags)
	cli.Complete(cmd, "policy", policiesAndPresets)
	cli.Complete(cmd, "estimator", cli.Words(study.Estimators))
	cli.Complete(cmd, "sharing", cli.Words(sim.SharingNames()))
	cli.Complete(cmd, "know", cli.Words(study.Knows))
	cli.Complete(cmd, "truth", cli.Words(study.TruthWords))
	return f
}

// conditionFlags set the conditions.
var conditionFlags = []string{"know", "no-repeats", "coarse", "sharing", "suspend", "urgent", "drain", "truth"}

// addConditionFlags adds the flags for the knowledge of tasks before a run, for the
// sharing of GPUs, and for differences between the modelled world and the scheduler's
// assumptions.
func addConditionFlags(flags *pflag.FlagSet) {
	sharing, know := sim.MPS.String(), string(study.KnowAll)
	cli.ChoiceFlag(flags, &sharing, sim.SharingNames(), "sharing", "how tasks share a GPU: "+strings.Join(sim.SharingNames(), ", ")+" (default: "+sharing+")")
	cli.ChoiceFlag(flags, &know, study.Knows, "know", "what is known of the tasks before they run: "+strings.Join(study.Knows, ", ")+" (default: "+know+")")
	flags.Bool("no-repeats", false, "no task is known to repeat another (default: tasks of one workload are)")
	flags.Bool("coarse", false, "the GPUs tell only the share of time in which a kernel runs, as cards without performance counters")
	flags.String("truth", study.TruthWords[0], "how the modelled world differs from what policies believe, `KEY=VALUE`,... or perturbed")
	flags.String("suspend", "", "tasks can be suspended, with the `speed` of a copy in either direction: 5GB/s; also 5GB/s,pause=200ms,host=512G,leave=0.5")
	flags.String("urgent", "", "this `share` of the tasks is urgent (priority high), drawn for each trace, for example 0.1")
	flags.String("drain", "", "a `GPU` is drained for maintenance, from and until two times of the trace: 0@2h-4h; 0@2h-4h,move: its tasks are moved")
}
