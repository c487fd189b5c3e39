// Package run contains the command carma run: it turns a command line or a task file into
// a submission.
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
	"carma/cmd/carma/notify"
	"carma/cmd/carma/submit"
	"carma/estimator/booking"
	"carma/runner/api"
)

// Command returns the command carma run.
func Command(a *cli.App) *cobra.Command {
	r := command{app: a}
	cmd := &cobra.Command{
		Use:               "run [flags] IMAGE [ARG...] | --conda ENV -- PROGRAM [ARG...] | -f FILE",
		GroupID:           cli.GroupTasks,
		Short:             "Run a container on the GPUs of this machine when they have room",
		Long:              long,
		Example:           example,
		Args:              r.names,
		ValidArgsFunction: cli.NoCompletion,
		RunE:              r.run,
	}
	r.flags(cmd)
	cmd.Flags().BoolVarP(&r.detach, "detach", "d", false, "print the task's id and return")
	r.keys = attach.KeysFlag(cmd)
	cmd.Flags().SetInterspersed(false)
	cli.Complete(cmd, "est-model", estModels)
	cli.Complete(cmd, "notify", notify.Wanted(a))
	return cmd
}

// command is one call of carma run.
type command struct {
	options
	app    *cli.App
	detach bool
	keys   *[]byte
}

// names checks that an image, a program or a file is named.
func (r *command) names(cmd *cobra.Command, args []string) error {
	if file, _ := cmd.Flags().GetString("file"); file == "" {
		return r.named(cmd, args)
	}
	if len(args) > 0 {
		return cli.Usagef("the file names its images", "-f and the image %s", args[0])
	}
	return nil
}

func (r *command) run(cmd *cobra.Command, args []string) error {
	args, err := r.program(cmd, args)
	if err != nil {
		return err
	}
	request, err := r.submission(r.app.In, args)
	if err != nil {
		return err
	}
	r.app.Warn(r.notes)
	client, err := r.app.Client(cmd)
	if err != nil {
		return err
	}
	submit.Proxies(r.app, client, request.Tasks, nil)
	if err := resolve(cmd.Context(), client, &request); err != nil && !(r.many.dryRun && cli.Away(err)) {
		return err
	}
	if err := submit.Channels(cmd.Context(), r.app, client); err != nil {
		return err
	}
	if r.many.dryRun {
		return submit.Preview(cmd.Context(), r.app, client, request, r.many.json)
	}
	if !r.detach {
		if err := mayAttach(r.app, request.Tasks); err != nil {
			return err
		}
	}
	signals, release := cli.AttachedSignals()
	defer release()
	if len(request.Tasks) > 1 || request.Group != "" || request.Tasks[0].Part != "" || request.Tasks[0].Array != nil {
		return runAll(cmd.Context(), r.app, client, request, r.detach, signals)
	}
	return r.one(cmd.Context(), client, &request.Tasks[0], signals)
}

// program returns the image, or "" without one, and the program's words, without carma's
// flags after the image.
func (r *command) program(cmd *cobra.Command, args []string) ([]string, error) {
	bare, err := r.bare(cmd)
	if err != nil {
		return nil, err
	}
	if bare {
		r.app.Warn(batchLines(args))
		return append([]string{""}, args...), nil
	}
	if len(args) == 0 {
		return nil, nil
	}
	words, warnings, err := behind(cmd, args[1:])
	if err != nil {
		return nil, err
	}
	r.app.Warn(warnings)
	return append(args[:1:1], words...), nil
}

// one submits a single task and, unless it is detached, shows its output until it has
// ended.
func (r *command) one(ctx context.Context, client *api.Client, request *api.Submit, signals <-chan os.Signal) error {
	task, err := send(ctx, client, *request)
	if err != nil {
		return err
	}
	r.app.Warn(task.Warnings)
	if r.detach {
		if len(request.Ports) > 0 {
			r.app.Say("carma port %d says where its ports are, when it runs", task.ID)
		}
		r.app.Println(task.ID)
		return nil
	}
	at := &attach.One{Client: client, Task: task.ID, Console: r.app.Console(), Signals: signals}
	if request.Interactive {
		local := attach.Local{In: r.app.In, Out: r.app.Out, Err: r.app.Err, Input: true, TTY: request.TTY, Keys: *r.keys}
		t := &attach.Terminal{One: *at, Local: local}
		end, err := t.Run(ctx)
		return t.Finish(&end, err)
	}
	end, err := at.Run(ctx)
	return at.Finish(&end, err)
}

// mayAttach refuses a terminal that is not possible.
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

// runAll submits several tasks and, unless they are detached, shows their output until
// all have ended.
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

// options contains the flags of run.
type options struct {
	request              api.Submit
	env, envFiles, label []string
	mounts, mountLists   []string
	entrypoint           string
	many                 manyOptions
	set                  *pflag.FlagSet
	notes                []string // about probable mistakes
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
	f.StringArrayVar(&o.mountLists, "mount", nil, "docker's long form of a `mount`: type=bind,source=./data,target=/data,ro")
	idleFlags(f, &o.request.Retries)
	f.SetNormalizeFunc(carmas)
}

// submit builds the request for an image and its arguments; the first is "" without an
// image.
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
	o.notes = append(o.notes, cli.Repeated(o.set)...)
	o.notes = append(o.notes, visibleNotes(o.env)...)
	o.notes = append(o.notes, cli.Relabelled(o.mounts)...)
	if o.set.Changed("entrypoint") {
		r.Entrypoint = []string{o.entrypoint}
	}
	if r.Check() != nil { // the caller reports it
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

// submissionFlags adds a flag for each field that can be given as one text.
func submissionFlags(cmd *cobra.Command, to *api.Submit) {
	for _, f := range api.Fields() {
		cli.FieldFlag(cmd, f, to)
	}
}

// send sends a task. Ctrl-C gives up.
func send(ctx context.Context, client *api.Client, request api.Submit) (api.Submitted, error) {
	task, err := submit.Send(ctx, func(ctx context.Context) (api.Submitted, error) { return client.Submit(ctx, request) })
	return task, noImage(request.Image, err)
}
