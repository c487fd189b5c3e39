package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"carma/runner/api"
)

// faultRow is a row of faults.csv: the outcome of one task.
type faultRow struct {
	Sharing, Task, Did string
	Phase              string
	Outcomes           string // outcomes of its attempts, in order
	Seconds            float64
	Note               string
}

// faults makes tasks fail on the card, without MPS and with it. It records the outcomes
// of these tasks and of their neighbours.
func (s *session) faults(ctx context.Context) error {
	if s.python == "" {
		return omitf("no Python with PyTorch on this machine")
	}
	return s.inContainers(ctx, func(ctx context.Context, e *engine) error {
		program, err := os.ReadFile(filepath.Join(s.programs, "fault.py"))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.work, "tmp", "fault.py"), program, 0o644); err != nil {
			return err
		}
		inner, cancel := context.WithTimeout(ctx, remaining(ctx)*6/10)
		err = s.taking(inner, e)
		cancel()
		if why := s.noMPS(); why != "" {
			s.say("faults under MPS: %s", why)
			return errors.Join(err, s.report.writeFaults(s.out))
		}
		return errors.Join(err, s.mpsFaults(ctx, e), s.report.writeFaults(s.out))
	})
}

// byMemory makes a daemon pack tasks only by their memory.
var byMemory = []string{"--policy", "magm", "--smact-cap", "0", "--smocc-cap", "0", "--drama-cap", "0", "--warm-up", "0s"}

// faulty are tasks of one daemon.
type faulty struct {
	*daemon
	sharing string
	ids     []string
	about   []string // what each task does
	names   []string
}

// start submits a task that runs fault.py.
func (f *faulty) start(ctx context.Context, name, mem, about string, args ...string) (string, error) {
	of := slices.Concat(f.pythonInContainer(), []string{"--name", name, "--mem", mem, imageName, "/tmp/fault.py", name, f.plan.device}, args)
	id, err := f.submit(ctx, of...)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	f.ids, f.about, f.names = append(f.ids, id), append(f.about, about), append(f.names, name)
	return id, nil
}

// says waits until a task has printed a word, or has ended.
func (f *faulty) says(ctx context.Context, id, word string) error {
	for {
		if strings.Contains(f.output(ctx, id), word) {
			return nil
		}
		task, err := api.NewClient(f.socket).Task(ctx, id)
		if err == nil && !task.Ended.IsZero() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("task %s did not say %q: %w", id, word, ctx.Err())
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// end waits for all tasks, or until the time is over, and notes their outcomes.
func (f *faulty) end(ctx context.Context, notes map[string]string) error {
	err := f.settle(ctx, f.ids)
	late := context.WithoutCancel(ctx)
	tasks, inspectErr := f.inspect(late, f.ids)
	if inspectErr != nil {
		return errors.Join(err, inspectErr)
	}
	for i := range tasks {
		t := &tasks[i]
		row := faultRow{Sharing: f.sharing, Task: f.names[i], Did: f.about[i], Phase: t.Phase, Note: notes[f.names[i]]}
		var outcomes []string
		for _, a := range t.Attempts {
			outcomes = append(outcomes, fmt.Sprintf("%s (exit code %d, %s booked, %s used)", a.Outcome, a.ExitCode, mib(a.Grant), mib(a.Peak)))
		}
		row.Outcomes = strings.Join(outcomes, "; ")
		if !t.Ended.IsZero() {
			row.Seconds = t.Ended.Sub(t.Submitted).Seconds()
		}
		if t.Reason != "" {
			row.Note = strings.TrimPrefix(row.Note+"; "+t.Reason, "; ")
		}
		f.report.Faults = append(f.report.Faults, row)
		f.keepOutput(f.sharing+": "+f.names[i], f.output(late, f.ids[i]))
	}
	return errors.Join(err, f.report.writeFaults(f.out))
}

// taking runs tasks by time slicing. One runs out of memory, one takes more than
// it declared, one makes an illegal memory access. It also kills the daemon.
func (s *session) taking(ctx context.Context, e *engine) error {
	d, err := s.startDaemon(ctx, "faults", e, byMemory...)
	if err != nil {
		return err
	}
	f := &faulty{daemon: d, sharing: timeSlicing}
	defer func() { f.stop() }()
	big, err := f.start(ctx, "neighbour", "60G", "holds 56 GiB and computes for 45 s", "hold", "56", "45")
	if err != nil {
		return err
	}
	if err := f.says(ctx, big, "ready"); err != nil {
		return err
	}
	for _, t := range [][]string{
		{"oom", "2G", "declares 2 GiB and allocates 30 GiB beside the neighbour", "oom", "30", "3"},
		{"overuse", "2G", "declares 2 GiB, holds 6 GiB and computes for 15 s", "hold", "6", "15"},
		{"illegal", "2G", "indexes out of bounds on the GPU", "illegal", "1", "0"},
	} {
		if _, err := f.start(ctx, t[0], t[1], t[2], t[3:]...); err != nil {
			return err
		}
	}
	if err := f.says(ctx, f.ids[2], "ready"); err != nil {
		return err
	}
	notes := map[string]string{}
	notes["neighbour"], err = f.restart(ctx, e, big)
	return errors.Join(err, f.end(ctx, notes))
}

// restart kills the daemon with SIGKILL and starts it again. It returns whether a
// task's container was adopted.
func (f *faulty) restart(ctx context.Context, e *engine, id string) (string, error) {
	before, err := f.inspect(ctx, []string{id})
	if err != nil {
		return "", err
	}
	if err := f.cmd.Process.Kill(); err != nil {
		return "", err
	}
	<-f.exited
	f.keepLog()
	d, err := f.startDaemon(ctx, f.name, e, byMemory...)
	if err != nil {
		return "", err
	}
	f.daemon = d
	after, err := f.inspect(ctx, []string{id})
	if err != nil {
		return "", err
	}
	a, b := before[0].Attempts, after[0].Attempts
	if len(a) == 1 && len(b) == 1 && a[0].Container == b[0].Container && a[0].Ended.IsZero() {
		return "the daemon was killed (kill -9) while it ran: adopted, the same container", nil
	}
	return fmt.Sprintf("the daemon was killed (kill -9) while it ran: %d attempts before, %d after, phase %s", len(a), len(b), after[0].Phase), nil
}

// mpsFaults runs clients of one MPS server. One asks for more than its limit, one
// is killed, and one makes an illegal memory access.
func (s *session) mpsFaults(ctx context.Context, e *engine) error {
	d, err := s.startDaemon(ctx, "mpsf", e, append([]string{"--mps", "user"}, byMemory...)...)
	if err != nil {
		return err
	}
	f := &faulty{daemon: d, sharing: byMPS}
	defer f.stop()
	seen := f.watchClients(ctx)
	keep, err := f.start(ctx, "neighbour", "6G", "holds 4 GiB and computes for 40 s", "hold", "4", "40")
	if err != nil {
		return err
	}
	victim, err := f.start(ctx, "killed", "6G", "holds 2 GiB; its process is killed (kill -9) while it computes", "hold", "2", "60")
	if err != nil {
		return err
	}
	if _, err := f.start(ctx, "limited", "2G", "declares 2 GiB and allocates 6 GiB", "oom", "6", "3"); err != nil {
		return err
	}
	for _, id := range []string{keep, victim} {
		if err := f.says(ctx, id, "ready"); err != nil {
			return err
		}
	}
	notes := map[string]string{"killed": "killed: " + killProgram("/tmp/fault.py", "killed")}
	time.Sleep(5 * time.Second) // an effect on the neighbour shows within seconds
	notes["neighbour"] = "5 s after the kill: " + f.phaseOf(ctx, keep)
	bad, err := f.start(ctx, "illegal", "2G", "indexes out of bounds on the GPU", "illegal", "1", "0")
	if err != nil {
		return err
	}
	if err := f.says(ctx, bad, "Error"); err != nil {
		return err
	}
	time.Sleep(5 * time.Second)
	notes["neighbour"] += "; 5 s after the illegal access: " + f.phaseOf(ctx, keep)
	clients := seen()
	if why := clients.verdict(2); why != "" {
		notes["neighbour"] += "; " + why
	}
	return f.end(ctx, notes)
}

// phaseOf returns a task's phase and the outcomes of its attempts.
func (f *faulty) phaseOf(ctx context.Context, id string) string {
	task, err := api.NewClient(f.socket).Task(ctx, id)
	if err != nil {
		return err.Error()
	}
	words := []string{task.Phase}
	for _, a := range task.Attempts {
		words = append(words, strings.TrimSpace(fmt.Sprintf("attempt %d %s", a.N, a.Outcome)))
	}
	return strings.Join(words, ", ")
}

// killProgram kills the processes of this machine that run a program with this
// word among its arguments. It returns how many there were.
func killProgram(program, word string) string {
	n := 0
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		text, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		args := strings.Split(string(text), "\x00")
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && slices.Contains(args, program) && slices.Contains(args, word) && !strings.Contains(args[0], "carma") {
			if syscall.Kill(pid, syscall.SIGKILL) == nil {
				n++
			}
		}
	}
	return fmt.Sprintf("%d processes", n)
}

// writeFaults writes faults.csv.
func (r *report) writeFaults(folder string) error {
	t := newTable("sharing", "task", "does", "phase", "attempts", "seconds", "note")
	for _, row := range r.Faults {
		t.add(row.Sharing, row.Task, row.Did, row.Phase, row.Outcomes, figure(row.Seconds, 1), row.Note)
	}
	return t.write(folder, "faults.csv")
}
