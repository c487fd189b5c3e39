package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/runner/api"
)

func (a *app) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run [flags] IMAGE [ARG...] | -f FILE",
		Short: "Run a container on the GPUs of this machine when it is its turn",
		Long: `Run a container image as a task. carma picks its GPUs, waits until they are
free enough, shows the output and exits with the task's code. What stands after
the image is for the task.

The first Ctrl-C stops the task, the second leaves it running and exits with
code 130. A task outlives the terminal and the daemon.

Several tasks can be submitted at once, all or none: with --array, --sweep or a
task file. Their output has the task's name before each line, the exit code is
the highest of theirs, -d prints their ids. See docs/tasks.md.

How much GPU memory the task needs is taken from --mem, else from what earlier
runs of the same image and command used, else from --probe, else from what was
measured or is estimated for --est-model and --batch-size, else from runs at
other batch sizes, else from --params, --family and --batch-size with a wide
bound; else it gets whole GPUs. Images may say it themselves with the labels
carma.est-model, carma.batch-size, carma.gpus.`,
		Example: `  carma run --est-model resnet50 --batch-size 64 my/training:1 --epochs 3
  carma run -d --mem 12G --gpus 2 -v ./data:/data:ro my/training:1
  carma run --array 1-100%8 my/training:1 --fold {index}
  carma run --sweep lr=0.1,0.01 --sweep bs=32,64 my/training:1 --lr {lr} -b {bs}
  carma run --after 17 my/evaluation:1; carma run -f tasks.yaml --dry-run`,
		Args: func(cmd *cobra.Command, args []string) error {
			if file, _ := cmd.Flags().GetString("file"); file != "" {
				if len(args) > 0 {
					return usagef("the file names its images", "-f and the image %s", args[0])
				}
				return nil
			}
			if len(args) == 0 || args[0] == "" {
				return usagef("write for example: carma run --mem 8G my/training:1", "no image named")
			}
			return nil
		},
		ValidArgsFunction: noCompletion,
	}
	o := runOptions{}
	o.flags(cmd)
	detach := cmd.Flags().BoolP("detach", "d", false, "print the task's id and return")
	cmd.Flags().SetInterspersed(false)
	complete(cmd, "est-model", estModels)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		request, err := o.submission(a.in, args)
		if err != nil {
			return err
		}
		client, err := a.client(cmd)
		if err != nil {
			return err
		}
		if o.many.dryRun {
			return a.preview(cmd.Context(), client, request, o.many.json)
		}
		signals, release := stopSignals()
		defer release()
		if len(request.Tasks) > 1 || request.Group != "" || request.Tasks[0].Part != "" || request.Tasks[0].Array != nil {
			return a.runAll(cmd.Context(), client, request, *detach, signals)
		}
		task, err := submit(cmd.Context(), client, request.Tasks[0])
		if err != nil {
			return err
		}
		for _, w := range task.Warnings {
			a.say("%s", printable(w))
		}
		if *detach {
			a.println(task.ID)
			return nil
		}
		at := &attached{client: client, task: task.ID, console: a.console(), signals: signals}
		end, err := at.run(cmd.Context())
		return at.finish(&end, err)
	}
	return cmd
}

// runAll submits several tasks and, unless they are to be left alone, shows
// their output until all have ended.
func (a *app) runAll(ctx context.Context, client *api.Client, request api.Submission, detach bool, signals <-chan os.Signal) error {
	all, err := interruptible(ctx, func(ctx context.Context) (api.SubmittedAll, error) { return client.SubmitAll(ctx, request) })
	if err != nil {
		return err
	}
	for _, w := range all.Warnings {
		a.say("%s", printable(w))
	}
	if detach {
		a.printIDs(all.Tasks)
		return nil
	}
	c := &crowd{attached: attached{client: client, console: a.console(), signals: signals}, group: all.Group, tasks: all.Tasks}
	ends, err := c.run(ctx)
	return c.finish(ends, err)
}

// submit sends a task; Ctrl-C gives up.
func submit(ctx context.Context, client *api.Client, request api.Submit) (api.Submitted, error) {
	return interruptible(ctx, func(ctx context.Context) (api.Submitted, error) { return client.Submit(ctx, request) })
}

func interruptible[A any](ctx context.Context, send func(context.Context) (A, error)) (A, error) {
	ctx, release := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer release()
	answer, err := send(ctx)
	if errors.Is(err, context.Canceled) {
		return answer, errInterrupted
	}
	return answer, err
}

var errInterrupted = &interruptedError{}

type interruptedError struct{}

func (*interruptedError) Error() string {
	return "interrupted before the daemon answered; carma ps tells whether it has the task"
}
func (*interruptedError) Unwrap() error { return context.Canceled }

// runOptions are the flags of run.
type runOptions struct {
	request                      api.Submit
	env, envFiles, mounts, label []string
	entrypoint                   string
	many                         manyOptions
	set                          *pflag.FlagSet
}

func (o *runOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	o.set = f
	submissionFlags(cmd, &o.request)
	o.many.flags(f)
	f.StringArrayVarP(&o.label, "user-label", "l", nil, "label `key=value`, to find tasks again; may be repeated")
	f.StringArrayVarP(&o.env, "env", "e", nil, "environment `KEY=value`; KEY alone takes yours")
	f.StringArrayVar(&o.envFiles, "env-file", nil, "read environment from a `file`")
	f.StringArrayVarP(&o.mounts, "volume", "v", nil, "mount a folder, `source:target[:ro]`")
	f.StringVar(&o.entrypoint, "entrypoint", "", "replace the image's entrypoint by this `command`")
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "label" {
			name = "user-label" // docker's word
		}
		return pflag.NormalizedName(name)
	})
}

// submit builds the request for an image and its arguments.
func (o *runOptions) submit(args []string) (api.Submit, error) {
	r := o.request
	r.Image, r.Command = args[0], args[1:]
	var err error
	if r.Env, err = environment(o.envFiles, o.env); err != nil {
		return r, err
	}
	if r.Mounts, err = bindMounts(o.mounts); err != nil {
		return r, err
	}
	if r.Labels, err = labels(o.label); err != nil {
		return r, err
	}
	if o.set.Changed("entrypoint") {
		r.Entrypoint = []string{o.entrypoint}
	}
	return r, nil
}
