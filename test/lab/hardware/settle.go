package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"carma/runner/api"
)

const (
	// mostStarts is the number of consecutive times that a task may fail to start, or
	// lose its engine, before the phase is given up. carma itself would continue to try,
	// at growing intervals, until the time is over.
	mostStarts = 2
	// troubled is the number of consecutive readings that may show a fault of the engine
	// or the GPU.
	troubled = 5
)

// settle waits until all tasks have ended. When the time is over, it stops the
// others. The error says why they cannot run here.
func (d *daemon) settle(ctx context.Context, ids []string) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var why error
	done := make(chan struct{})
	go func() {
		defer close(done)
		if why = d.hopeless(inner, ids); why != nil {
			cancel()
		}
	}()
	_, err := d.carma(inner, append([]string{"wait"}, ids...)...)
	cancel()
	<-done
	if why == nil && ctx.Err() == nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) { // this is a task's exit code; inspect shows which task's
			return nil
		}
		return err
	}
	late, end := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer end()
	_, _ = d.carma(late, slices.Concat([]string{"stop", "--now"}, ids)...)
	_, _ = d.carma(late, append([]string{"wait"}, ids...)...)
	return why
}

// hopeless watches tasks and returns why they cannot run, or nil if the context has
// ended.
func (d *daemon) hopeless(ctx context.Context, ids []string) error {
	client, seen := api.NewClient(d.socket), 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
		for _, id := range ids {
			if task, err := client.Task(ctx, id); err == nil && stuck(&task) != "" {
				return fmt.Errorf("task %s (%s): %s", id, task.Name, stuck(&task))
			}
		}
		info, err := client.Info(ctx)
		if err != nil || len(info.Trouble) == 0 {
			seen = 0
			continue
		}
		if seen++; seen >= troubled {
			x := info.Trouble[0]
			return errors.New(strings.TrimSuffix(x.String()+"; "+x.Cause, "; "))
		}
	}
}

// stuck returns the reason why a task will not run, from its last attempts, or "" if it may
// run.
func stuck(task *api.Task) string {
	failed := 0
	for _, a := range slices.Backward(task.Attempts) {
		if a.Outcome == "" {
			continue // not ended yet
		}
		if a.Outcome != "infrastructure" && a.Outcome != "cannot-start" {
			return ""
		}
		if failed += max(1, a.Starts); failed >= mostStarts {
			return fmt.Sprintf("%d starts failed: %s", failed, a.Message)
		}
	}
	return ""
}

// output is everything that a task has printed, on both streams.
func (d *daemon) output(ctx context.Context, id string) string {
	out, err := exec.CommandContext(ctx, filepath.Join(d.bin, "carma"), "logs", id, "--socket", d.socket).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s\ncarma logs %s: %v", out, id, err)
	}
	return string(out)
}

// keepOutput writes the end of a task's output into the suite's log.
func (d *daemon) keepOutput(name, text string) {
	fmt.Fprintf(d.file, "--- output of %s\n%s\n--- end of it\n", name, strings.TrimSpace(text[max(0, len(text)-16<<10):]))
}

// resultOf returns the result that a training printed last, or nil if it printed none.
func resultOf(text string) *taskResult {
	for line := range strings.Lines(text) {
		if _, told, ok := strings.Cut(line, "result {"); ok {
			var r taskResult
			if json.Unmarshal([]byte("{"+told), &r) == nil {
				return &r
			}
		}
	}
	return nil
}
