package estimate

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/engine"
	"carma/cmd/carma/settings"
	"carma/configs/models"
	"carma/containers"
	"carma/estimator/probe"
	"carma/runner/api"
)

// probeOptions contains the flags of a probe.
type probeOptions struct {
	timeout       time.Duration
	memory        int64
	gpus          int
	env, envFiles []string
	mounts        []string
	workDir       string
	entrypoint    string
}

func (o *probeOptions) flags(f *pflag.FlagSet) {
	cli.DurationFlag(f, &o.timeout, "probe-timeout", "how long a probe may take (default 2m)")
	cli.MemoryFlag(f, &o.memory, "probe-memory", "host memory a probe may use (default 8G)")
	f.StringArrayVarP(&o.env, "env", "e", nil, "environment `KEY=value`; KEY alone takes yours")
	f.StringArrayVar(&o.envFiles, "env-file", nil, "read environment from a `file`")
	f.StringArrayVarP(&o.mounts, "volume", "v", nil, "mount a folder, `source:target`; a probe cannot write to it")
	f.StringVarP(&o.workDir, "workdir", "w", "", "working `folder` in the container")
	f.StringVar(&o.entrypoint, "entrypoint", "", "replace the image's entrypoint by this `command`")
}

// request returns the probe of an image and its arguments.
func (o *probeOptions) request(args []string) (probe.Request, error) {
	r := probe.Request{
		Image: args[0], Command: args[1:], WorkDir: o.workDir, GPUs: o.gpus,
		Limits: probe.Limits{Timeout: o.timeout, Memory: o.memory},
	}
	var err error
	if r.Env, err = cli.Environment(o.envFiles, o.env); err != nil {
		return r, err
	}
	var mounts []api.Mount
	if mounts, err = cli.Mounts(o.mounts); err != nil {
		return r, err
	}
	for _, m := range mounts {
		r.Mounts = append(r.Mounts, containers.Mount{Source: m.Source, Target: m.Target, ReadOnly: true})
	}
	if o.entrypoint != "" {
		r.Entrypoint = []string{o.entrypoint}
	}
	if uid := os.Getuid(); uid != 0 {
		r.User = strconv.Itoa(uid) + ":" + strconv.Itoa(os.Getgid()) // as the task will run
	}
	return r, nil
}

// probeConfig finds a task's model configuration by running its first steps on the CPU,
// on the engine of config. If the probe finds none, the error is a *probe.FailedError
// with the reason. Ctrl-C ends the probe.
func (o *probeOptions) probeConfig(ctx context.Context, config settings.Config, args []string) (*models.Config, error) {
	request, err := o.request(args)
	if err != nil {
		return nil, err
	}
	driver, err := engine.Open(config)
	if err != nil {
		return nil, err
	}
	defer func() { _ = driver.Close() }()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	request.Folder = filepath.Join(cache, "carma")
	ctx, release := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer release()
	return probe.Run(ctx, driver, request)
}
