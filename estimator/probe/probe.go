package probe

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"carma/configs/models"
	"carma/containers"
)

// Request contains the task to probe and the resources of the probe.
type Request struct {
	// name of the container, or empty for a random name
	Name   string
	Labels map[string]string
	// The same as for the task's own container, but mounts become read-only.
	Image      string
	Entrypoint []string
	Command    []string
	Env        []string
	WorkDir    string
	User       string
	Mounts     []containers.Mount
	ShmSize    int64
	// GPUs is the number of GPUs visible to the program, or 0 for one.
	GPUs int
	// Folder is a folder of the host for the probe's files. The files are the
	// same for all probes and stay there.
	Folder string
	Limits Limits
}

// Limits bound a probe. 0 means the default, given after the field.
type Limits struct {
	Timeout   time.Duration // 2 min
	Memory    int64         // bytes; 8 GiB
	CPUs      float64       // processors; half of the machine's, at most 4
	Processes int64         // threads included; 1024
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Timeout:   cmp.Or(max(l.Timeout, 0), 2*time.Minute),
		Memory:    cmp.Or(l.Memory, 8<<30),
		CPUs:      cmp.Or(l.CPUs, min(4, max(1, float64(runtime.NumCPU())/2))),
		Processes: cmp.Or(l.Processes, 1024),
	}
}

// FailedError is the reason why a probe that ran found no configuration. The task itself
// may be fine and can be estimated in another way.
type FailedError struct {
	Reason string // one sentence
}

// Error returns the reason.
func (e *FailedError) Error() string { return e.Reason }

// Label is set on every probe's container. If carma is killed, such a container remains.
// It ends at its time limit and may be removed.
const Label = "carma.probe"

// Target is the folder of the probe's files in the container.
const Target = "/carma-probe"

const (
	starting = 30 * time.Second // the longest time that engine and Python take to start
	cleaning = time.Minute
	draining = 5 * time.Second
)

// Run probes a task. The error is a *[FailedError] if the program produced no
// configuration, otherwise the engine's. When Run returns, the container is gone.
func Run(ctx context.Context, driver containers.Driver, r Request) (*models.Config, error) {
	limits := r.Limits.withDefaults()
	img, err := driver.Image(ctx, r.Image)
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	folder, err := install(r.Folder)
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	mark := "carma-probe-" + strings.ToLower(rand.Text())
	id, err := driver.Create(ctx, r.spec(limits, mark, folder, img.Env))
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleaning)
		defer cancel()
		_ = driver.Remove(ctx, id)
	}()
	if err := driver.Start(ctx, id); err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, limits.Timeout+starting)
	defer cancel()
	heard, exit, err := listen(limited, driver, id, mark)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	late := limited.Err() != nil
	if err != nil && !late {
		return nil, fmt.Errorf("probe: %w", err)
	}
	return conclude(heard, ending{exit, late}, limits)
}

// listen reads the output until the result has arrived or the container has ended.
func listen(ctx context.Context, driver containers.Driver, id, mark string) (*hearer, containers.Exit, error) {
	h := newHearer(mark)
	logCtx, endLog := context.WithCancel(ctx)
	defer endLog()
	logged := make(chan error, 1)
	go func() {
		logged <- driver.Logs(logCtx, id, time.Time{}, true, func(_ time.Time, _ containers.Stream, line []byte, partial bool) {
			if !partial {
				h.line(line)
			}
			if h.done() {
				endLog()
			}
		})
	}()
	type waited struct {
		exit containers.Exit
		err  error
	}
	ended := make(chan waited, 1)
	waitCtx, endWait := context.WithCancel(ctx)
	defer endWait()
	go func() {
		exit, err := driver.Wait(waitCtx, id)
		ended <- waited{exit, err}
	}()
	select {
	case err := <-logged:
		if h.done() {
			endWait()
			<-ended
			return h, containers.Exit{}, nil
		}
		w := <-ended
		return h, w.exit, cmp.Or(w.err, err)
	case w := <-ended:
		timer := time.AfterFunc(draining, endLog)
		defer timer.Stop()
		err := <-logged
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		return h, w.exit, cmp.Or(w.err, err)
	}
}

// spec returns the task's container, in a sandbox.
func (r Request) spec(limits Limits, mark, folder string, imageEnv []string) containers.Spec {
	path := Target
	var env []string
	for _, kv := range slices.Concat(imageEnv, r.Env) { // the last one counts
		if value, ok := strings.CutPrefix(kv, "PYTHONPATH="); ok {
			path = Target
			if value != "" {
				path += ":" + value
			}
		}
	}
	for _, kv := range r.Env {
		if !strings.HasPrefix(kv, "PYTHONPATH=") {
			env = append(env, kv)
		}
	}
	env = append(env,
		"PYTHONPATH="+path, "PYTHONDONTWRITEBYTECODE=1", "TMPDIR="+containers.ScratchDir,
		"OMP_NUM_THREADS="+strconv.Itoa(max(1, int(limits.CPUs))),
		"CARMA_PROBE="+mark,
		"CARMA_PROBE_TIMEOUT="+strconv.FormatFloat(limits.Timeout.Seconds(), 'f', -1, 64),
		"CARMA_PROBE_MEMORY="+strconv.FormatInt(limits.Memory, 10),
		"CARMA_PROBE_GPUS="+strconv.Itoa(max(1, r.GPUs)),
	)
	labels := map[string]string{Label: mark}
	maps.Copy(labels, r.Labels)
	spec := containers.Spec{
		Name:       cmp.Or(r.Name, mark),
		Image:      r.Image,
		Identity:   labels,
		Entrypoint: r.Entrypoint,
		Command:    r.Command,
		Env:        env,
		User:       r.User,

		ContainerOptions: containers.ContainerOptions{WorkDir: r.WorkDir, ShmSize: r.ShmSize},

		Mounts: []containers.Mount{{Source: folder, Target: Target, ReadOnly: true}},

		NoNewPrivileges: true,
		Sandbox: &containers.Sandbox{
			Memory: limits.Memory, CPUs: limits.CPUs, Processes: limits.Processes, Scratch: min(limits.Memory/8, 1<<30),
		},
	}
	for _, m := range r.Mounts {
		m.ReadOnly = true
		spec.Mounts = append(spec.Mounts, m)
	}
	return spec
}
