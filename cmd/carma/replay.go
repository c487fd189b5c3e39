package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carma/configs/traces"
	"carma/mapper"
	"carma/mapper/sim"
	"carma/runner/api"
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
estimates.
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


With --check, print which bounds of a file the result does not keep. With
--published, replay what CARMA and AEGIS published and print both.

Exits with 1 when a task did not succeed or a bound does not hold.`,
		Example: `  carma replay philly-t1-60 --policy exclusive,magm
  carma replay philly-t1-60 --policy magm,carma,OR-MAGM --estimator oracle,none
  carma replay philly-t1-60 philly-t2-60 --gpu-count 3 --json
  carma replay philly-heavy-60 --html report.html --csv tasks.csv
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
	flags.StringVar(&virtual.policies, "policy", "", "`policies` and presets, separated by commas (default: all policies); with --live: only if the daemon's is this one")
	flags.StringVar(&virtual.gpus, "gpus", "sim:"+defaultServer, "the `server`: sim:NAME or sim:FILE")
	countFlag(flags, &virtual.count, 1, "gpu-count", "so many GPUs of the server's kind (default: as it has)")
	flags.StringVar(&virtual.estimator, "estimator", estimators[0], "what is known of a task's memory, separated by commas: "+strings.Join(estimators, ", "))
	flags.DurationVar(&virtual.startUp, "start-up", defaultStartUp, "`time` from a launch until the container runs")
	countFlag(flags, &virtual.lookAhead, 1, "look-ahead", "tasks that do not fit and are passed over, for policies (default: as the policy has it; 1: strictly in order)")
	flags.StringVar(&virtual.check, "check", "", "compare the result with the bounds in this `file`; without TRACE or --policy, replay what it names")
	published := flags.Bool("published", false, "print ours beside what CARMA and AEGIS published, and end")
	listPresets := flags.Bool("presets", false, "list the presets and end")
	files := addFileFlags(flags)
	virtual.sharing = sim.MPS.String()
	choiceFlag(flags, &virtual.sharing, sim.SharingNames(), "sharing", "how tasks share a GPU: "+strings.Join(sim.SharingNames(), ", ")+" (default: "+virtual.sharing+")")
	live := flags.Bool("live", false, "send the tasks to the daemon as containers")
	speed := flags.Float64("speed", 0, "with --live: set a simulated server to this `speed` meanwhile (default: as it is)")
	image := flags.String("image", "carma/simtask:latest", "with --live: the tasks' `image`; its argument is the workload's name")
	prefix := flags.String("name", "", "with --live: begin the tasks' names with this (default: the trace's name)")
	measured.add(cmd)
	asJSON := addJSON(cmd)
	complete(cmd, "policy", policiesAndPresets)
	complete(cmd, "estimator", words(estimators))
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
		policy := virtual.policies
		switch {
		case len(args) != 1:
			return usagef("", "--live takes one trace, not %d", len(args))
		case flags.Changed("speed") && !(*speed > 0 && *speed <= 100_000):
			return usagef("", "--speed: %v is not above 0 and at most 100000", *speed)
		case policy != "":
			if err := oneOf(policy, mapper.PolicyNames()); err != nil {
				return usagef("", "--policy: %v", err)
			}
		}
		trace, err := traces.Read(args[0])
		if err != nil {
			return usagef("", "%v", err)
		}
		client, err := a.client(cmd)
		if err != nil {
			return err
		}
		if *prefix == "" {
			*prefix = trace.Name
		}
		r := &liveReplay{
			client: client, console: a.console(), trace: trace, image: *image, policy: policy,
			prefix: containerName(*prefix), speed: *speed, id: runID(),
		}
		r.patience = newPatience(r.console.say)
		done, err := a.replayLive(cmd.Context(), r)
		if err != nil {
			return err
		}
		if *asJSON {
			err = a.json(done.json())
		} else {
			fmt.Fprint(a.out, done.text())
		}
		if err == nil && done.summary.Failed > 0 {
			err = codeError(exitFailed)
		}
		return err
	}
	return cmd
}

// traceless are the flags that a replay needs no trace with.
var traceless = []string{"presets", "published", "check"}

func needsNoTrace(cmd *cobra.Command) bool {
	return slices.ContainsFunc(traceless, cmd.Flags().Changed)
}

// policiesAndPresets completes --policy.
func policiesAndPresets(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	fit, directive := policies(cmd, args, start)
	for i := range presets {
		if strings.HasPrefix(presets[i].name, start) {
			fit = append(fit, presets[i].name+"\t"+presets[i].doc)
		}
	}
	return fit, directive
}

// oneMode refuses the flags of the other kind of replay.
func oneMode(cmd *cobra.Command, live bool) error {
	names, hint, format := []string{"speed", "image", "name"}, "add --live", "--%s is for a replay on the daemon"
	if live {
		names, hint, format = []string{"gpus", "gpu-count", "estimator", "start-up", "look-ahead", "sharing", "presets", "published", "check"}, "leave it out", "--%s is for a replay in virtual time; the daemon has its own"
		if f := cmd.Flags(); slices.ContainsFunc(fileFlags, f.Changed) {
			names, format = fileFlags, "--%s is for a replay in virtual time"
		}
	}
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return usagef(hint, format, name)
		}
	}
	return onlyThat(cmd)
}

// onlyThat refuses what --presets and --published do not look at.
func onlyThat(cmd *cobra.Command) error {
	flags := cmd.Flags()
	for _, alone := range []string{"presets", "published"} {
		if !flags.Changed(alone) {
			continue
		}
		if flags.NArg() > 0 {
			return usagef("leave it out", "--%s takes no trace, not %q", alone, flags.Arg(0))
		}
		for _, name := range []string{"policy", "gpus", "gpu-count", "estimator", "start-up", "look-ahead", "sharing", "html", "csv", "presets", "published", "check"} {
			if name != alone && flags.Changed(name) {
				return usagef("leave it out", "--%s has no use with --%s", name, alone)
			}
		}
	}
	return nil
}

// replayLive runs r. The first Ctrl-C stops what has been submitted, the
// second leaves it.
func (a *app) replayLive(ctx context.Context, r *liveReplay) (replayed, error) {
	signals, release := stopSignals()
	defer release()
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	interrupted := make(chan struct{})
	go func() {
		defer close(interrupted)
		select {
		case <-signals:
			cancel()
		case <-ended:
		}
	}()
	done, err := r.run(running)
	close(ended)
	<-interrupted
	if running.Err() == nil && err == nil {
		return done, nil
	}
	r.console.echoed()
	stopped := err == nil || errors.Is(err, context.Canceled)
	if !stopped && r.submitted == 0 {
		return done, err
	}
	if !stopped {
		r.console.say("the replay ends early; its tasks are stopped")
	} else {
		r.console.say("stopping its tasks; press Ctrl-C again to leave them running")
	}
	stopping, cancelStop := context.WithTimeout(ctx, time.Minute)
	defer cancelStop()
	left := make(chan struct{})
	go func() {
		defer close(left)
		r.stopAll(stopping)
	}()
	select {
	case <-left:
	case <-signals:
		r.console.say("the tasks go on: carma ps -l replay=%s", r.id)
		cancelStop()
		<-left
	}
	if stopped {
		return done, codeError(exitDetached)
	}
	return done, err
}

func runID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// containerName replaces what a task's name cannot hold.
func containerName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, s)
}

// replayed is a replay that went to its end.
type replayed struct {
	Trace, Run, Image, Policy, Source string

	Speed   float64
	tasks   []api.Task // in the trace's order
	summary sim.Summary
}

// text is the table for people: a row per measure, so that more runs can
// stand beside each other.
func (d *replayed) text() string {
	s := &d.summary
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s, policy %s, speed %g\n", printable(d.Trace), d.Source, d.Policy, d.Speed)
	for _, row := range []struct{ name, value string }{
		{"tasks", fmt.Sprint(s.Tasks)}, {"succeeded", fmt.Sprint(s.Succeeded)}, {"failed", fmt.Sprint(s.Failed)},
		{"GPU OOMs", fmt.Sprint(s.OOMs)}, {"relaunches", fmt.Sprint(s.Relaunches)},
		{"makespan", exact(s.Makespan)}, {"JCT, mean", exact(s.MeanJCT)}, {"JCT, p95", exact(s.P95JCT)},
		{"waiting, mean", exact(s.MeanWaiting)}, {"execution, mean", exact(s.MeanExecution)}, {"lost, mean", exact(s.MeanLost)},
	} {
		fmt.Fprintf(&b, "  %-16s %12s\n", row.name, row.value)
	}
	for i := range d.tasks {
		if t := &d.tasks[i]; t.Phase != string(mapper.Succeeded) {
			fmt.Fprintf(&b, "  %s (task %d) %s\n", t.Name, t.ID, printable(ending(t)))
		}
	}
	return b.String()
}

// exact is a time to the second: 7h02m05s.
func exact(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case s >= 3600:
		return fmt.Sprintf("%dh%02dm%02ds", s/3600, s%3600/60, s%60)
	case s >= 60:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return d.Round(100 * time.Millisecond).String()
}

// json is the same for programs, with each task's times. Times are seconds.
func (d *replayed) json() any {
	type taskJSON struct {
		ID        int64   `json:"id"`
		Name      string  `json:"name"`
		Workload  string  `json:"workload"`
		Succeeded bool    `json:"succeeded"`
		Attempts  int     `json:"attempts"`
		JCT       float64 `json:"jct_s"`
		Waiting   float64 `json:"waiting_s"`
		Execution float64 `json:"execution_s"`
		Lost      float64 `json:"lost_s"`
	}
	list := make([]taskJSON, len(d.tasks))
	for i := range d.tasks {
		t := &d.tasks[i]
		r := recordOf(t)
		l := r.Lifetimes()
		list[i] = taskJSON{
			t.ID, t.Name, t.Submit.Labels["workload"], r.Succeeded, len(t.Attempts),
			l.JCT.Seconds(), l.Waiting.Seconds(), l.Execution.Seconds(), l.Lost.Seconds(),
		}
	}
	s := &d.summary
	return struct {
		Trace      string     `json:"trace"`
		Run        string     `json:"run"`
		Image      string     `json:"image"`
		Source     string     `json:"source"`
		Policy     string     `json:"policy"`
		Speed      float64    `json:"speed"`
		Tasks      int        `json:"tasks"`
		Succeeded  int        `json:"succeeded"`
		Failed     int        `json:"failed"`
		OOMs       int        `json:"ooms"`
		Relaunches int        `json:"relaunches"`
		Makespan   float64    `json:"makespan_s"`
		MeanJCT    float64    `json:"jct_mean_s"`
		MedianJCT  float64    `json:"jct_median_s"`
		P95JCT     float64    `json:"jct_p95_s"`
		WorstJCT   float64    `json:"jct_max_s"`
		Waiting    float64    `json:"waiting_mean_s"`
		Execution  float64    `json:"execution_mean_s"`
		Lost       float64    `json:"lost_mean_s"`
		TotalLost  float64    `json:"lost_total_s"`
		List       []taskJSON `json:"list"`
	}{
		d.Trace, d.Run, d.Image, d.Source, d.Policy, d.Speed, s.Tasks, s.Succeeded, s.Failed, s.OOMs, s.Relaunches,
		s.Makespan.Seconds(), s.MeanJCT.Seconds(), s.MedianJCT.Seconds(), s.P95JCT.Seconds(), s.WorstJCT.Seconds(),
		s.MeanWaiting.Seconds(), s.MeanExecution.Seconds(), s.MeanLost.Seconds(), s.TotalLost.Seconds(), list,
	}
}

// recordOf turns the API's task into what the metrics take.
func recordOf(t *api.Task) sim.Record {
	r := sim.Record{Submitted: instant(t.Submitted), Ended: instant(t.Ended), Succeeded: t.Phase == string(mapper.Succeeded)}
	for _, at := range t.Attempts {
		r.Attempts = append(r.Attempts, sim.AttemptRecord{
			Launched: instant(at.Launched), Started: instant(at.Started), Ended: instant(at.Ended),
			OK: at.Outcome == string(mapper.ExitOK), OOM: at.Outcome == string(mapper.ExitGPUOOM),
		})
	}
	return r
}

// instant is 0 for a time that has not come.
func instant(t time.Time) mapper.Instant {
	if t.IsZero() {
		return 0
	}
	return mapper.InstantOf(t)
}
