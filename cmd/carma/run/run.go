// Package run is carma run: a command line or a task file becomes a submission.
package run

import (
	"context"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/cmd/carma/attach"
	"carma/cmd/carma/cli"
	"carma/cmd/carma/envs"
	"carma/cmd/carma/submit"
	"carma/estimator/booking"
	"carma/runner/api"
)

// Command is carma run.
func Command(a *cli.App) *cobra.Command {
	o := options{}
	cmd := &cobra.Command{
		Use:     "run [flags] IMAGE [ARG...] | --conda ENV -- PROGRAM [ARG...] | -f FILE",
		GroupID: cli.GroupTasks,
		Short:   "Run a container on the GPUs of this machine when they have room",
		Long: `Run a container image as a task. carma picks its GPUs, waits until they have
room, shows the output and exits with the task's code.

Flags stand before the image, words behind it are the program's. These flags are
carma's directly behind the image too: --est-model, --host-mem, --shm-size,
--stop-grace, --user-label, --visibility; up to the first other word, or to --.

Without an image: --conda ENV, --venv FOLDER and --host run a program of this
machine from the present folder. Its container sees the machine's programs,
read-only, your home, and no services. -e ENV is short for --conda ENV where
nothing stands before -- and ENV has no =; with an image -e takes your variable.

-it gives the task your terminal once it has started, as docker run -it. Keys
ctrl-p ctrl-q leave it running, and carma attach takes it again. -i alone sends
it your input, from a pipe too. See docs/tasks.md.

Ctrl-C stops the task; a second one returns at once with code 130, and does not
call that off. Ctrl-\ leaves the task running. A task outlives the terminal and
the daemon.

--array, --sweep and a task file (-f) submit several tasks at once, all or none.
Their output has the task's name before each line. The exit code is the highest
of theirs. -d prints their ids. See docs/tasks.md.

Memory has a unit: 512M, 12G. A time is 90 (seconds), 90s, 30m, 2d, 2:00:00 or
1-12:00:00 (days-hours:minutes:seconds).

The GPU memory that is booked for a task is the first of these that is known:
  --mem, unless earlier runs of the same image and command have used more
  the memory that those runs have used
  --probe: an estimate from the first steps of the program
  --est-model and --batch-size: as measured; with --precision, --seq, --lora and
  other settings of the training, else, as estimated from the layers; settings
  that no flag gives are read from the program's words, and a line says so
  an estimate from earlier runs at other batch sizes
  --params, --family and --batch-size: an estimate with a wide bound
Else nothing is known: the task is watched, and others join it once its memory
and activity were seen. An image can have the labels carma.est-model,
carma.batch-size, carma.gpus and carma.mem in place of the flags.`,
		Example: `  carma run my/training:1 --est-model resnet50
  carma run --est-model resnet50 --batch-size 64 my/training:1 --epochs 3
  carma run --est-model Qwen/Qwen2.5-7B --seq 2048 --lora 16 my/training:1
  carma run -d --mem 12G --gpus 2 -v ./data:/data:ro my/training:1
  carma run --conda exp --gpus 2 -- python train.py --lr 0.1
  carma run --array 1-100%8 my/training:1 --fold {index}
  carma run --sweep lr=0.1,0.01 --sweep bs=32,64 my/training:1 --lr {lr} -b {bs}
  carma run --after 17 my/evaluation:1; carma run -f tasks.yaml --dry-run`,
		Args: func(cmd *cobra.Command, args []string) error {
			if file, _ := cmd.Flags().GetString("file"); file != "" {
				if len(args) > 0 {
					return cli.Usagef("the file names its images", "-f and the image %s", args[0])
				}
				return nil
			}
			return o.named(cmd, args)
		},
		ValidArgsFunction: cli.NoCompletion,
	}
	o.flags(cmd)
	detach := cmd.Flags().BoolP("detach", "d", false, "print the task's id and return")
	keys := attach.KeysFlag(cmd)
	cmd.Flags().SetInterspersed(false)
	cli.Complete(cmd, "est-model", estModels)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch bare, err := o.bare(cmd); {
		case err != nil:
			return err
		case bare:
			a.Warn(batchLines(args))
			args = append([]string{""}, args...)
		case len(args) > 0:
			program, warnings, err := behind(cmd, args[1:])
			if err != nil {
				return err
			}
			a.Warn(warnings)
			args = append(args[:1:1], program...)
		}
		request, err := o.submission(a.In, args)
		if err != nil {
			return err
		}
		a.Warn(o.notes)
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		if err := resolve(cmd.Context(), client, &request); err != nil && !(o.many.dryRun && cli.Away(err)) {
			return err
		}
		if o.many.dryRun {
			return submit.Preview(cmd.Context(), a, client, request, o.many.json)
		}
		if !*detach {
			if err := mayAttach(a, request.Tasks); err != nil {
				return err
			}
		}
		signals, release := cli.AttachedSignals()
		defer release()
		if len(request.Tasks) > 1 || request.Group != "" || request.Tasks[0].Part != "" || request.Tasks[0].Array != nil {
			return runAll(cmd.Context(), a, client, request, *detach, signals)
		}
		task, err := send(cmd.Context(), client, request.Tasks[0])
		if err != nil {
			return err
		}
		a.Warn(task.Warnings)
		if *detach {
			if n := len(request.Tasks[0].Ports); n > 0 {
				a.Say("carma port %d says where its ports are, when it runs", task.ID)
			}
			a.Println(task.ID)
			return nil
		}
		at := &attach.One{Client: client, Task: task.ID, Console: a.Console(), Signals: signals}
		if first := &request.Tasks[0]; first.Interactive {
			t := &attach.Terminal{One: *at, Local: attach.Local{In: a.In, Out: a.Out, Err: a.Err, Input: true, TTY: first.TTY, Keys: *keys}}
			end, err := t.Run(cmd.Context())
			return t.Finish(&end, err)
		}
		end, err := at.Run(cmd.Context())
		return at.Finish(&end, err)
	}
	return cmd
}

// mayAttach refuses a terminal that cannot be given.
func mayAttach(a *cli.App, tasks []api.Submit) error {
	for i := range tasks {
		switch t := &tasks[i]; {
		case t.Interactive && len(tasks) > 1:
			return cli.Usagef("with -d they wait for carma attach", "-i gives one task your input, these are %d", len(tasks))
		case t.Interactive && t.TTY:
			return attach.NotATerminal(a)
		}
	}
	return nil
}

// runAll submits several tasks and, unless they are to be left alone, shows
// their output until all have ended.
func runAll(ctx context.Context, a *cli.App, client *api.Client, request api.Submission, detach bool, signals <-chan os.Signal) error {
	all, err := submit.Send(ctx, func(ctx context.Context) (api.SubmittedAll, error) { return client.SubmitAll(ctx, request) })
	if err != nil {
		return err
	}
	a.Warn(all.Warnings)
	if detach {
		printIDs(a, all.Tasks)
		return nil
	}
	c := &attach.Many{One: attach.One{Client: client, Console: a.Console(), Signals: signals}, Group: all.Group, Tasks: all.Tasks}
	ends, err := c.Run(ctx)
	return c.Finish(ends, err)
}

// options are the flags of run.
type options struct {
	request              api.Submit
	env, envFiles, label []string
	mounts, mountLists   []string
	entrypoint           string
	many                 manyOptions
	set                  *pflag.FlagSet
	notes                []string // about what was likely meant otherwise
}

func (o *options) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	o.set = f
	submissionFlags(cmd, &o.request)
	o.many.flags(f)
	f.StringArrayVarP(&o.label, "user-label", "l", nil, "label `key=value`, to find tasks again; may be repeated")
	f.StringArrayVarP(&o.env, "env", "e", nil, "environment `KEY=value`; KEY alone takes yours")
	f.StringArrayVar(&o.envFiles, "env-file", nil, "read environment from a `file`")
	f.StringArrayVarP(&o.mounts, "volume", "v", nil, "mount a folder, `source:target[:ro]`")
	f.StringVar(&o.entrypoint, "entrypoint", "", "replace the image's entrypoint by this `command`")
	f.StringArrayVar(&o.mountLists, "mount", nil, "mount a folder, in docker's long form: `type=bind,source=./data,target=/data,readonly`")
	idleFlags(f, &o.request.Retries)
	f.SetNormalizeFunc(carmas)
}

// submit builds the request for an image and its arguments; without an image the
// first is empty.
func (o *options) submit(args []string) (api.Submit, error) {
	r := o.request
	r.Image, r.Command = args[0], args[1:]
	var err error
	if r.Env, err = cli.Environment(o.envFiles, o.env); err != nil {
		return r, err
	}
	if r.Mounts, err = cli.Mounts(o.mounts); err != nil {
		return r, err
	}
	for _, list := range o.mountLists {
		if text, is, err := cli.TmpfsOf(list); is {
			f, _ := api.FieldNamed("tmpfs")
			if err == nil {
				if err = f.Set(&r, text); err != nil {
					err = cli.Usagef("", "--mount %s: %v", list, err)
				}
			}
			if err != nil {
				return r, err
			}
			continue
		}
		m, err := cli.MountOf(list)
		if err != nil {
			return r, err
		}
		r.Mounts = append(r.Mounts, m)
	}
	if r.Labels, err = cli.Labels(o.label); err != nil {
		return r, err
	}
	if f := o.set.Lookup("gpus"); f.Changed {
		g, _ := api.ParseGPUs(f.Value.String())
		for _, note := range g.Notes() {
			o.notes = append(o.notes, "--gpus: "+note)
		}
	}
	if o.set.Changed("entrypoint") {
		r.Entrypoint = []string{o.entrypoint}
	}
	if r.Check() != nil { // said by the caller
		return r, nil
	}
	if err := envs.Settle(&r, "."); err != nil {
		return r, err
	}
	notes, err := submit.Model(&r, ".")
	o.notes = append(o.notes, notes...)
	return r, err
}

func estModels(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	names, _ := cli.Words(booking.NewCatalogue().Names())(cmd, args, start)
	return names, cobra.ShellCompDirectiveDefault // or a file
}

// printIDs prints the numbers of submitted tasks, one per line.
func printIDs(a *cli.App, tasks []api.Submitted) {
	for _, t := range tasks {
		a.Println(strconv.FormatInt(t.ID, 10))
	}
}

// submissionFlags adds a flag for each field that one text can say.
func submissionFlags(cmd *cobra.Command, to *api.Submit) {
	for _, f := range api.Fields() {
		cli.FieldFlag(cmd, f, to)
	}
}

// send sends a task; Ctrl-C gives up.
func send(ctx context.Context, client *api.Client, request api.Submit) (api.Submitted, error) {
	task, err := submit.Send(ctx, func(ctx context.Context) (api.Submitted, error) { return client.Submit(ctx, request) })
	return task, noImage(request.Image, err)
}
