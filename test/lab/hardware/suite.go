package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"carma/runner/api"
)

// mode is one way to run the suite.
type mode struct {
	name string
	args []string // arguments of the daemon
}

// mps reports whether its tasks should be clients of MPS.
func (m mode) mps() bool { return strings.HasPrefix(m.name, "mps") }

var modes = []mode{
	{"exclusive", []string{"--policy", "exclusive"}},
	{"sharing", nil},
	{"mps", []string{"--mps", "user"}},
}

// suiteRun is a row of suite.csv.
type suiteRun struct {
	Mode      string
	Makespan  float64 // seconds
	EnergyJ   float64
	OOMs      int
	Succeeded int
	Tasks     []taskRun
	Why       string // why it was not run, or empty if it was
	Note      string // how it differed from its mode, or empty if it did not
}

// taskRun is a row of tasks.csv. Times are in seconds, from the first submission; memory
// is in bytes, or 0 if unknown.
type taskRun struct {
	training
	Phase, Reason   string
	Attempts, OOMs  int
	Ended           float64
	Execution       float64 // in the attempt that finished
	Grant, Peak     int64   // as carma recorded them
	Points          int     // number of points of its memory curve
	Reserved        int64   // as the task itself reports: PyTorch's allocator
	StepSeconds     float64
	Estimate        int64
	EstimatedMethod string
}

// suite runs the same tasks exclusively, sharing, and sharing by MPS.
func (s *session) suite(ctx context.Context) error {
	if !s.dryRun && s.python == "" {
		return omitf("no Python with PyTorch on this machine")
	}
	return s.inContainers(ctx, s.runModes)
}

// inContainers opens an engine, tries a task, and calls f.
func (s *session) inContainers(ctx context.Context, f func(context.Context, *engine) error) error {
	undo, err := s.describeCard(ctx)
	if err != nil {
		return omitf("%v", err)
	}
	defer undo()
	e, err := s.openEngine(ctx)
	if err != nil {
		return err
	}
	defer e.close()
	s.report.Engine = e.name
	if err := os.MkdirAll(filepath.Join(s.work, "tmp"), 0o777); err != nil {
		return err
	}
	if err := s.attempt(ctx, e); err != nil {
		return fmt.Errorf("a task in a container: %w", err)
	}
	return f(ctx, e)
}

func (s *session) runModes(ctx context.Context, e *engine) error {
	seconds := s.seconds(remaining(ctx))
	for i, m := range modes {
		inner, cancel := context.WithTimeout(ctx, remaining(ctx)/time.Duration(len(modes)-i)*3/2)
		run, err := s.runMode(inner, e, m, seconds)
		if err == nil && m.name == "mps" && run.Why == "" && (run.Succeeded == 0 || strings.HasPrefix(run.Note, notMPS)) { // some drivers need the host's IPC namespace
			s.say("suite: no task was a client of MPS and succeeded; once more with --mps-ipc host")
			m.name, m.args = "mps-ipc-host", append(m.args, "--mps-ipc", "host")
			s.report.Suite = append(s.report.Suite, *run)
			run, err = s.runMode(inner, e, m, seconds)
		}
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		s.report.Suite = append(s.report.Suite, *run)
		if err := s.report.writeSuite(s.out); err != nil {
			return err
		}
	}
	return nil
}

// attempt runs one training of two steps through carma, to check that a task can
// run here at all.
func (s *session) attempt(ctx context.Context, e *engine) error {
	if s.python == "" {
		s.report.Tried = "not tried: no Python with PyTorch on this machine"
		return nil
	}
	d, err := s.startDaemon(ctx, "try", e)
	if err != nil {
		return err
	}
	defer d.stop()
	t := training{"mnist_cnn", "mnist", 4, plain}
	id, err := d.submit(ctx, s.command(t, "--steps", "4", "--device", s.plan.device)...)
	if err != nil {
		return err
	}
	if err := d.settle(ctx, []string{id}); err != nil {
		return err
	}
	tasks, err := d.inspect(context.WithoutCancel(ctx), []string{id})
	if err != nil {
		return err
	}
	text := d.output(context.WithoutCancel(ctx), id)
	r := resultOf(text)
	if tasks[0].Phase != "succeeded" || r == nil {
		d.keepOutput(t.id(), text)
		return fmt.Errorf("%s: %s: %s", tasks[0].Phase, tasks[0].Reason, lastLine(text))
	}
	s.report.Tried = fmt.Sprintf("mnist_cnn on %s, through %s", r.Device, e.name)
	for _, args := range [][]string{{"doctor", "--prove", imageName}, {"gpus", "--json"}} {
		out, err := d.carma(context.WithoutCancel(ctx), args...)
		fmt.Fprintf(s.file, "--- carma %s: %v\n%s--- end of it\n", strings.Join(args, " "), err, out)
	}
	return nil
}

// command returns the arguments of carma run for a real training.
func (s *session) command(t training, more ...string) []string {
	args := append(s.pythonInContainer(), "--est-model", t.name(), "--batch-size", strconv.Itoa(t.batch), imageName, "-m", "carma_train")
	return append(append(args, t.args()...), more...)
}

// pythonInContainer returns the arguments of carma run for the Python with
// PyTorch, before the image and the program.
func (s *session) pythonInContainer() []string {
	args := append(s.mounts(), "--entrypoint", s.python, "-e", "PYTHONPATH=/carma", "-e", "HOME=/tmp", "-e", "OMP_NUM_THREADS=2",
		"-e", "PYTHONDONTWRITEBYTECODE=1", "-e", "PYTHONUNBUFFERED=1", "--shm-size", "1G")
	if path := os.Getenv("LD_LIBRARY_PATH"); path != "" {
		args = append(args, "-e", "LD_LIBRARY_PATH="+path)
	}
	return args
}

// startUp is about the time of a task before its first step, in seconds. The
// lengths of the tasks are chosen with it.
const startUp = 14

// seconds returns the time for which each task should train alone so that the suite fits
// into the remaining time. The exclusive run takes the sum, each of the two others at
// most as long.
func (s *session) seconds(left time.Duration) float64 {
	n := float64(len(s.plan.suite))
	return min(max((left.Seconds()-2*startUp*n)/(3*n), 3), 60)
}

// steps returns the number of steps that a task trains in a number of seconds, by its
// step time in this run or an earlier one.
func (s *session) steps(t training, seconds float64) int {
	for _, to := range s.report.Paired {
		for _, p := range to.Profiles {
			if p.id() == t.id() && p.Rate > 0 {
				return max(4, int(seconds*p.Rate))
			}
		}
	}
	if rates, err := readRates(s.rates); err == nil && rates[t.id()] > 0 {
		return max(4, int(seconds*rates[t.id()]))
	}
	for _, row := range s.report.Trained {
		if row.id() == t.id() && row.StepSeconds > 0 {
			return max(4, int(seconds/row.StepSeconds))
		}
	}
	s.say("suite: the step time of %s is not known, it trains 100 steps; --rates takes it from an earlier run", t.id())
	return 100
}

// runMode runs all tasks under a daemon of their own.
func (s *session) runMode(ctx context.Context, e *engine, m mode, seconds float64) (*suiteRun, error) {
	run := &suiteRun{Mode: m.name}
	if m.mps() {
		if run.Why = s.noMPS(); run.Why != "" {
			return run, nil
		}
	}
	d, err := s.startDaemon(ctx, m.name, e, m.args...)
	if err != nil {
		return nil, err
	}
	defer d.stop()
	before, err := d.energy(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, t := range s.plan.suite {
		args := []string{"--est-model", t.name(), "--batch-size", strconv.Itoa(t.batch), imageName, simulated[t.model]}
		if s.card != nil {
			args = s.command(t, "--steps", strconv.Itoa(cmp.Or(s.plan.length, s.steps(t, seconds))), "--device", s.plan.device)
		}
		id, err := d.submit(ctx, args...)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	seen := d.watchClients(ctx)
	err = d.settle(ctx, ids)
	clients := seen()
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	after, err := d.energy(ctx)
	if err != nil {
		return nil, err
	}
	run.EnergyJ = after - before
	tasks, err := d.inspect(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i := range tasks {
		text := d.output(ctx, ids[i])
		if tasks[i].Phase != "succeeded" {
			d.keepOutput(m.name+": "+s.plan.suite[i].id(), text)
		}
		run.add(s.plan.suite[i], &tasks[i], tasks[0].Submitted, resultOf(text))
	}
	if m.mps() {
		run.Note = clients.verdict(len(tasks))
	}
	return run, nil
}

// noMPS returns the reason why MPS cannot be tried on this machine, or "" if it can.
func (s *session) noMPS() string {
	if s.card == nil {
		return "a simulated GPU has no MPS"
	}
	if _, err := exec.LookPath("nvidia-cuda-mps-control"); err != nil {
		return "no nvidia-cuda-mps-control in PATH or " + strings.Join(driverFolders, ", ")
	}
	return ""
}

// add adds a task's row.
func (run *suiteRun) add(t training, task *api.Task, began time.Time, r *taskResult) {
	row := taskRun{training: t, Phase: task.Phase, Reason: strings.TrimSpace(task.Reason), Attempts: len(task.Attempts),
		Estimate: task.Estimate.Memory, EstimatedMethod: task.Estimate.Method}
	for _, a := range task.Attempts {
		if a.Outcome == "gpu-oom" {
			row.OOMs++
		}
		row.Peak, row.Grant, row.Points = max(row.Peak, a.Peak), a.Grant, len(a.Curve)
		if a.Outcome == "ok" {
			row.Execution = a.Ended.Sub(a.Started).Seconds()
		}
	}
	if !task.Ended.IsZero() {
		row.Ended = task.Ended.Sub(began).Seconds()
	}
	if r != nil {
		row.Reserved, row.StepSeconds = r.Reserved, r.StepSeconds
	}
	if task.Phase == "succeeded" {
		run.Succeeded++
	}
	run.OOMs += row.OOMs
	run.Makespan = max(run.Makespan, row.Ended)
	run.Tasks = append(run.Tasks, row)
}
