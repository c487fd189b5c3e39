package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"carma/runner/api"
)

// daemon is a carma daemon with its own data folder.
type daemon struct {
	*session
	name   string // name of the run
	socket string
	log    string
	mps    string // folder of the MPS control daemons
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

// startDaemon starts a daemon on the card, or on a simulated one, and waits until
// it answers.
func (s *session) startDaemon(ctx context.Context, name string, e *engine, args ...string) (*daemon, error) {
	dir := filepath.Join(s.work, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	d := &daemon{session: s, name: name, socket: filepath.Join(dir, "s"), log: filepath.Join(dir, "log"), mps: filepath.Join(dir, "mps"), exited: make(chan struct{})}
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
		"--mps-dir", d.mps, "--mps", "off", "--pull", "never"}, gpus, e.args, args)
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

// stop stops the daemon and the MPS control daemons that it has started. It
// copies the daemon's log into the suite's.
func (d *daemon) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if out, err := d.mpsCommand(ctx, "stop", "--all", "--force").CombinedOutput(); err != nil {
		d.say("carma mps stop: %v: %s", err, lastLine(string(out)))
	}
	defer d.keepLog()
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.exited:
	case <-ctx.Done():
		_ = d.cmd.Process.Kill()
		<-d.exited
	}
}

// mostLog is the largest number of bytes that are kept of one log.
const mostLog = 256 << 10

// keepLog copies the end of the daemon's log into the suite's log file.
func (d *daemon) keepLog() {
	text, err := os.ReadFile(d.log)
	if err != nil {
		d.say("%v", err)
		return
	}
	fmt.Fprintf(d.file, "--- log of the daemon, %s\n%s--- end of it\n", d.name, text[max(0, len(text)-mostLog):])
}

func (d *daemon) carma(ctx context.Context, args ...string) ([]byte, error) {
	return d.carmaOutput(ctx, append(args, "--socket", d.socket)...)
}

// mpsCommand returns a carma command for the MPS control daemons of this daemon.
func (d *daemon) mpsCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(d.bin, "carma"), append([]string{"mps"}, args...)...)
	cmd.Env = append(os.Environ(), "CARMA_MPS_DIR="+d.mps)
	return cmd
}

// energy returns the card's energy counter, in joules.
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

func (d *daemon) inspect(ctx context.Context, ids []string) ([]api.Task, error) {
	out, err := d.carma(ctx, append([]string{"inspect"}, ids...)...)
	if err != nil {
		return nil, err
	}
	var tasks []api.Task
	err = json.Unmarshal(out, &tasks)
	return tasks, err
}

// taskResult is the last line of a training. Memory is in bytes.
type taskResult struct {
	StepSeconds float64 `json:"step_seconds"`
	Reserved    int64   `json:"max_memory_reserved"`
	Device      string  `json:"device"`
}
