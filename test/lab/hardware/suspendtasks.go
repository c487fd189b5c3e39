package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"carma/runner/api"
)

// asideRow is a row of suspended-tasks.csv.
type asideRow struct {
	Task, Did string
	Nth       int // number of its suspension, or 0
	Result    string
	Seconds   float64 // until the command was done, or 0 if not measured
	Host      int64   // bytes that went to host memory
	Used      int64   // bytes in use on the card then, as carma gpus has it
	Note      string
}

// deterministic trains with the same result each time, as far as PyTorch can.
const deterministic = `import sys, torch
torch.use_deterministic_algorithms(True, warn_only=True)
torch.backends.cudnn.deterministic = True
from carma_train import cli
sys.exit(cli.main(sys.argv[1:]))
`

// suspendTasks has carma suspend and resume a task in a container, again and again,
// and compares it with an undisturbed one. Another task runs meanwhile.
func (s *session) suspendTasks(ctx context.Context) error {
	if !s.dryRun && s.python == "" {
		return omitf("no Python with PyTorch on this machine")
	}
	return s.inContainers(ctx, func(ctx context.Context, e *engine) error {
		if err := os.WriteFile(filepath.Join(s.work, "tmp", "train.py"), []byte(deterministic), 0o644); err != nil {
			return err
		}
		d, err := s.startDaemon(ctx, "suspending", e, append(slices.Clone(byMemory), "--suspend", "here")...)
		if err != nil {
			return err
		}
		defer d.stop()
		if why := d.cannotSuspend(ctx); why != "" {
			return omitf("carma cannot suspend tasks here: %s", why)
		}
		a := &aside{daemon: d}
		return errors.Join(a.measure(ctx), s.report.writeAside(s.out))
	})
}

// suspendAnswers is the longest time that the driver may take to answer a daemon that has
// started.
const suspendAnswers = time.Minute

// cannotSuspend returns the reason of carma doctor against suspending, or empty if there
// is none.
func (d *daemon) cannotSuspend(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, suspendAnswers)
	defer cancel()
	for {
		gpus, err := api.NewClient(d.socket).GPUs(ctx)
		if err == nil && len(gpus) > 0 && gpus[0].Suspend != "" {
			return ""
		}
		select {
		case <-time.After(300 * time.Millisecond):
			continue
		case <-ctx.Done():
		}
		checks, err := api.NewClient(d.socket).Doctor(context.WithoutCancel(ctx))
		if err != nil {
			return err.Error()
		}
		i := slices.IndexFunc(checks, func(c api.Check) bool { return c.Name == "suspending tasks" })
		if i < 0 {
			return "carma doctor does not tell why"
		}
		return strings.TrimSuffix(checks[i].Detail+"; "+checks[i].Fix, "; ")
	}
}

// aside is the tasks that are suspended, and those beside them.
type aside struct{ *daemon }

func (a *aside) note(row asideRow) { a.report.Aside = append(a.report.Aside, row) }

// start submits the training that is measured.
func (a *aside) start(ctx context.Context, t training, steps int) (string, error) {
	memory := []string{"--exclusive"}
	if a.plan.aside.memory != "" {
		memory = []string{"--mem", a.plan.aside.memory}
	}
	if a.card == nil {
		return a.submit(ctx, append(memory, imageName, simulated[t.model])...)
	}
	program := []string{"-e", "CUBLAS_WORKSPACE_CONFIG=:4096:8", imageName, "/tmp/train.py"}
	return a.submit(ctx, slices.Concat(a.pythonInContainer(), memory, program, t.args(), []string{"--steps", strconv.Itoa(steps), "--device", a.plan.device, "--gpus", "1", "--report", "0"})...)
}

// undisturbed runs the training alone and returns its losses.
func (a *aside) undisturbed(ctx context.Context, t training, steps int) (map[int]string, error) {
	id, err := a.start(ctx, t, steps)
	if err == nil {
		err = a.settle(ctx, []string{id})
	}
	if err != nil {
		return nil, err
	}
	task, err := api.NewClient(a.socket).Task(ctx, id)
	if err != nil {
		return nil, err
	}
	losses := lossesOf(a.output(ctx, id))
	a.note(asideRow{Task: t.id(), Did: "undisturbed", Result: task.Phase, Seconds: task.Ended.Sub(task.Started).Seconds(), Note: fmt.Sprintf("%d losses", len(losses))})
	return losses, nil
}

// measure takes one training off the card as often as the plan says.
func (a *aside) measure(ctx context.Context) error {
	t, steps, times := a.plan.aside.training, a.plan.aside.steps, a.plan.aside.times
	want, err := a.undisturbed(ctx, t, steps)
	if err != nil {
		return err
	}
	id, err := a.start(ctx, t, steps)
	if err != nil {
		return err
	}
	done := 0
	for nth := 1; nth <= times; nth++ {
		if err := a.reaches(ctx, id, steps*nth/(times+2)); err != nil {
			a.note(asideRow{Task: t.id(), Did: "wait", Nth: nth, Result: err.Error()})
			break
		}
		if !a.once(ctx, t, id, nth, nth == times/2+1) {
			break
		}
		done++
	}
	if err := a.settle(ctx, []string{id}); err != nil {
		return err
	}
	task, err := api.NewClient(a.socket).Task(ctx, id)
	if err != nil {
		return err
	}
	text := a.output(ctx, id)
	a.keepOutput("suspended: "+t.id(), text)
	row := asideRow{Task: t.id(), Did: fmt.Sprintf("suspended %d times", done), Result: task.Phase, Note: compared(want, lossesOf(text))}
	if last := len(task.Attempts); last > 0 {
		at := task.Attempts[last-1]
		row.Seconds = (task.Ended.Sub(task.Started) - at.Suspended).Seconds()
		row.Note += fmt.Sprintf("; attempt %d, off the card for %.1f s, which the seconds leave out", at.N, at.Suspended.Seconds())
	}
	a.note(row)
	return nil
}

// once suspends the task and resumes it. It reports whether both went well.
func (a *aside) once(ctx context.Context, t training, id string, nth int, other bool) bool {
	row := asideRow{Task: t.id(), Did: "suspend", Nth: nth}
	began := time.Now()
	_, err := a.carma(ctx, "suspend", id)
	row.Seconds, row.Result = time.Since(began).Seconds(), resultText(err)
	if task, wrong := api.NewClient(a.socket).Task(ctx, id); wrong == nil && task.Suspension != nil {
		row.Host = task.Suspension.Host
	}
	time.Sleep(2 * time.Second) // carma reads the card once a second
	row.Used = a.used(ctx)
	if a.note(row); err != nil {
		return false
	}
	if other {
		a.another(ctx, id)
	}
	row = asideRow{Task: t.id(), Did: "resume", Nth: nth}
	began = time.Now()
	_, err = a.carma(ctx, "resume", "--wait", id)
	row.Seconds, row.Result = time.Since(began).Seconds(), resultText(err)
	a.note(row)
	return err == nil
}

// another runs a task while one is suspended, which must make no progress.
func (a *aside) another(ctx context.Context, suspended string) {
	t := a.plan.aside.other
	before := len(a.output(ctx, suspended))
	began := time.Now()
	id, err := a.start(ctx, t, a.plan.aside.steps)
	if err == nil {
		err = a.settle(ctx, []string{id})
	}
	row := asideRow{Task: t.id(), Did: "another task meanwhile", Result: resultText(err), Seconds: time.Since(began).Seconds()}
	if task, wrong := api.NewClient(a.socket).Task(ctx, id); err == nil && wrong == nil {
		row.Result = task.Phase
	}
	row.Note = "the suspended task printed nothing"
	if more := len(a.output(ctx, suspended)) - before; more > 0 {
		row.Note = fmt.Sprintf("the suspended task printed %d bytes", more)
	}
	a.note(row)
}

// reaches waits until a training has made some steps. A simulated one prints none: it
// only has to run.
func (a *aside) reaches(ctx context.Context, id string, steps int) error {
	for {
		task, err := api.NewClient(a.socket).Task(ctx, id)
		switch {
		case err == nil && !task.Ended.IsZero():
			return fmt.Errorf("it has ended before: %s %s", task.Phase, task.Reason)
		case err == nil && task.Phase == "running" && (a.card == nil || len(lossesOf(a.output(ctx, id))) >= max(1, steps)):
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// used is the memory in use on the card, in bytes.
func (a *aside) used(ctx context.Context) int64 {
	out, err := a.carma(ctx, "gpus", "--json")
	var gpus []api.GPU
	if err != nil || json.Unmarshal(out, &gpus) != nil || len(gpus) == 0 {
		return 0
	}
	return gpus[0].Used
}

func resultText(err error) string {
	if err != nil {
		return err.Error()
	}
	return "done"
}

// lossesOf returns the losses that a training has printed, by step.
func lossesOf(text string) map[int]string {
	losses := map[int]string{}
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		if len(w) > 3 && w[0] == "step" && w[2] == "loss" {
			if n, err := strconv.Atoi(w[1]); err == nil {
				losses[n] = w[3]
			}
		}
	}
	return losses
}

// compared says whether two trainings had the same losses.
func compared(undisturbed, suspended map[int]string) string {
	steps := slices.Sorted(maps.Keys(undisturbed))
	if len(steps) == 0 {
		return "no losses to compare"
	}
	for _, n := range steps {
		if suspended[n] != undisturbed[n] {
			return fmt.Sprintf("losses differ from step %d on: undisturbed %s, suspended %s", n, undisturbed[n], cmp.Or(suspended[n], "none"))
		}
	}
	return fmt.Sprintf("the same loss at all %d steps, %s at the last", len(steps), undisturbed[steps[len(steps)-1]])
}

// writeAside writes suspended-tasks.csv.
func (r *report) writeAside(folder string) error {
	t := newTable("task", "did", "nth", "result", "seconds", "host_mib", "seconds_per_gib", "card_used_mib", "note")
	for _, row := range r.Aside {
		t.add(row.Task, row.Did, nonzero(row.Nth), row.Result, figure(row.Seconds, 3), mebi(row.Host), figure(row.PerGiB(), 3), mebi(row.Used), row.Note)
	}
	return t.write(folder, "suspended-tasks.csv")
}

// PerGiB returns the seconds of a command for each GiB that went to host memory, or 0 if
// none did.
func (row asideRow) PerGiB() float64 {
	if row.Host == 0 {
		return 0
	}
	return row.Seconds / (float64(row.Host) / (1 << 30))
}

func nonzero(n int) any {
	if n == 0 {
		return ""
	}
	return n
}
