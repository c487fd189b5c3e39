package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"carma/runner/api"
)

// daemon is carma's, with a data folder of its own.
type daemon struct {
	*session
	socket string
	log    string
	cmd    *exec.Cmd
	exited chan struct{}
}

// simulatedServer has one GPU, for a dry run.
const simulatedServer = `schema: carma/server/v1
name: dry-run
description: one simulated GPU, for trying the suite out
gpus:
  - model: simulated GPU
    memory_mib: 81559
    idle_power_w: 70
    peak_power_w: 700
    relative_speed: 1
    uuids: [GPU-00000000-0000-0000-0000-000000000001]
`

// startDaemon starts a daemon on the card, or on a simulated one, and waits
// until it answers.
func (s *session) startDaemon(ctx context.Context, name string, e *engine, args ...string) (*daemon, error) {
	dir := filepath.Join(s.work, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	d := &daemon{session: s, socket: filepath.Join(dir, "s"), log: filepath.Join(dir, "log"), exited: make(chan struct{})}
	gpus := []string{"--gpus", "nvml:" + s.gpu}
	if s.card == nil {
		server := filepath.Join(dir, "server.yaml")
		if err := os.WriteFile(server, []byte(simulatedServer), 0o644); err != nil {
			return nil, err
		}
		gpus = []string{"--gpus", "sim:" + server, "--speed", "600"}
	}
	file, err := os.Create(d.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	all := slices.Concat([]string{"daemon", "--socket", d.socket, "--data-dir", filepath.Join(dir, "data"), "--log-format", "json",
		"--mps-dir", filepath.Join(dir, "mps"), "--pull", "never"}, gpus, e.args, args)
	d.cmd = exec.Command(filepath.Join(s.bin, "carma"), all...)
	d.cmd.Stdout, d.cmd.Stderr = file, file
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = d.cmd.Wait(); close(d.exited) }()
	return d, d.await(ctx)
}

func (d *daemon) await(ctx context.Context) error {
	for {
		if _, err := d.carma(ctx, "gpus", "--json"); err == nil {
			return nil
		}
		select {
		case <-d.exited:
			text, _ := os.ReadFile(d.log)
			return fmt.Errorf("the daemon ended: %s", lastLine(string(text)))
		case <-ctx.Done():
			d.stop()
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop ends the daemon, and the MPS control daemons that it has started.
func (d *daemon) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, _ = d.carma(ctx, "mps", "stop")
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.exited:
	case <-ctx.Done():
		_ = d.cmd.Process.Kill()
		<-d.exited
	}
}

func (d *daemon) carma(ctx context.Context, args ...string) ([]byte, error) {
	return d.carmaOutput(ctx, append(args, "--socket", d.socket)...)
}

// energy is the card's counter, in joules.
func (d *daemon) energy(ctx context.Context) (float64, error) {
	out, err := d.carma(ctx, "gpus", "--json")
	if err != nil {
		return 0, err
	}
	var gpus []api.GPU
	if err := json.Unmarshal(out, &gpus); err != nil {
		return 0, err
	}
	if len(gpus) != 1 {
		return 0, fmt.Errorf("carma gpus: %d GPUs, want one", len(gpus))
	}
	return gpus[0].EnergyJ, nil
}

// submit submits a task and returns its id.
func (d *daemon) submit(ctx context.Context, args ...string) (string, error) {
	// carma's own flags end at the image.
	out, err := d.carmaOutput(ctx, append([]string{"run", "-d", "--socket", d.socket}, args...)...)
	return strings.TrimSpace(string(out)), err
}

// settle waits until all tasks have ended. Those that have not when the time
// is over are stopped.
func (d *daemon) settle(ctx context.Context, ids []string) error {
	_, err := d.carma(ctx, append([]string{"wait"}, ids...)...)
	if ctx.Err() == nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) { // a task's exit code: inspect tells which
			return nil
		}
		return err
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	_, _ = d.carma(late, append([]string{"stop"}, ids...)...)
	_, _ = d.carma(late, append([]string{"wait"}, ids...)...)
	return nil
}

func (d *daemon) inspect(ctx context.Context, ids []string) ([]api.Task, error) {
	out, err := d.carma(ctx, append([]string{"inspect"}, ids...)...)
	if err != nil {
		return nil, err
	}
	var tasks []api.Task
	err = json.Unmarshal(out, &tasks)
	return tasks, err
}

// result is what a training printed last; nil if it did not come so far.
func (d *daemon) result(ctx context.Context, id int64) *taskResult {
	out, err := d.carma(ctx, "logs", strconv.FormatInt(id, 10))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(out)) {
		if _, told, ok := strings.Cut(line, "result {"); ok {
			var r taskResult
			if json.Unmarshal([]byte("{"+told), &r) == nil {
				return &r
			}
		}
	}
	return nil
}

// taskResult is the last line of a training; memory in bytes.
type taskResult struct {
	StepSeconds float64 `json:"step_seconds"`
	Reserved    int64   `json:"max_memory_reserved"`
	Device      string  `json:"device"`
}
