// Simtask simulates a training task on a simulated GPU server: it allocates the memory of
// a workload profile from the server, runs at the speed that the server sets, prints
// progress like a training script, and exits with PyTorch's own message when a GPU has no
// room. The image carma/simtask runs it.
//
// The environment names the task: CARMA_SIM (folder of the server's socket,
// /run/carma-sim if not set), CARMA_TASK, CARMA_ATTEMPT, and NVIDIA_VISIBLE_DEVICES for
// the GPUs.
//
// Exit codes: 0 trained, 1 out of GPU memory or a fault of the program (as Python's), 2
// wrong usage, 3 no GPU, 128 plus the signal that stopped it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"carma/mapper/model"
	"carma/runner/gpu/simgpu/client"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitNoGPU  = 3
	exitSignal = 128
)

// connectWindow is the time for which a task tries to connect to its server.
const connectWindow = 10 * time.Second

// stopped is the cause of a context that a signal has ended.
type stopped struct{ signal syscall.Signal }

func (s stopped) Error() string { return signalName(s.signal) }

func signalName(s syscall.Signal) string {
	if s == syscall.SIGTERM {
		return "SIGTERM"
	}
	return s.String()
}

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() { // until the process ends
		s := <-signals
		signal.Stop(signals) // the next signal ends it at once
		cancel(stopped{s.(syscall.Signal)})
	}()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr, connectWindow))
}

// run runs the whole program and returns its exit code.
func run(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer, window time.Duration) int {
	if len(args) == 1 && args[0] == "calibrate" {
		return calibrate(ctx, env, stdout, stderr, window)
	}
	o, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "simtask: %v\n", err)
		return exitUsage
	case o.list:
		list(stdout)
		return exitOK
	}
	j, err := o.job()
	if err != nil {
		fmt.Fprintf(stderr, "simtask: %v\n", err)
		return exitUsage
	}
	c, err := connect(ctx, j, env, window)
	if err != nil {
		if code, ok := stopCode(ctx); ok {
			return code
		}
		fmt.Fprintf(stderr, "simtask: %v\n", err)
		return exitNoGPU
	}
	defer c.Close()
	l, err := offer(ctx, env("CARMA_LEAVE"))
	if err != nil {
		fmt.Fprintf(stderr, "simtask: CARMA_LEAVE: %v\n", err)
		return exitFailed
	}
	t := &trainer{job: j, client: c, out: stdout, err: stderr, leaver: l}
	return t.run(ctx)
}

func connect(ctx context.Context, j job, env func(string) string, window time.Duration) (*client.Client, error) {
	visible := env("NVIDIA_VISIBLE_DEVICES")
	if visible == "" {
		return nil, errors.New("no GPU: NVIDIA_VISIBLE_DEVICES is not set; write GPU UUIDs, indexes or all")
	}
	dir := env("CARMA_SIM")
	if dir == "" {
		dir = "/run/carma-sim"
	}
	// Without a number it belongs to no task, which is 0.
	task, _ := strconv.ParseInt(env("CARMA_TASK"), 10, 64)
	attempt, _ := strconv.Atoi(env("CARMA_ATTEMPT"))
	c, err := client.Dial(ctx, client.Options{
		Dir: dir, Task: model.TaskID(max(0, task)), Attempt: max(0, attempt), Name: j.name,
		GPUs:   strings.Split(visible, ","),
		Loads:  j.idle(),
		Window: window,
	})
	if errors.Is(err, client.ErrNoServer) {
		return nil, fmt.Errorf("%w (is a carma daemon with simulated GPUs running, and its folder mounted?)", err)
	}
	return c, err
}

// stopCode returns the exit code of a program stopped by a signal.
func stopCode(ctx context.Context) (int, bool) {
	var s stopped
	if !errors.As(context.Cause(ctx), &s) {
		return 0, false
	}
	return exitSignal + int(s.signal), true
}
