package attach

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/mapper/model"
	"carma/runner/api"
)

// KeysFlag adds the flag for the keys that detach from a terminal.
func KeysFlag(cmd *cobra.Command) *[]byte {
	keys, err := ParseKeys(DefaultKeys)
	if err != nil {
		panic(err) // the text is a constant
	}
	cmd.Flags().Var(&cli.Parsed[[]byte]{To: &keys, Parse: ParseKeys, Kind: "keys", Text: DefaultKeys}, "detach-keys", "`keys` that leave a terminal")
	return &keys
}

// Command returns the command carma attach.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "attach [flags] [TASK]",
		GroupID: cli.GroupTasks,
		Short:   "Take the terminal of a task that runs",
		Long: `Take the terminal, or the input, of a task that was submitted with -it or -i: by
default of your last one that runs. The last output is shown again. Several
terminals may be attached to one task; all show the same.

ctrl-p ctrl-q leaves the task running (--detach-keys). The exit code is the
task's when it ends, 0 when you leave it.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("name one", "%d tasks named", len(args))
			}
			return cli.NoEmpty(args)
		},
		ValidArgsFunction: pick.Complete(false),
	}
	keys := KeysFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		task, err := interactive(cmd.Context(), client, args)
		if err != nil {
			return err
		}
		switch {
		case task.Finished():
			return cli.Usagef("carma logs "+strconv.FormatInt(task.ID, 10)+" shows its output", "task %d has ended: %s", task.ID, cli.Ending(&task))
		case !task.Submit.TTY && !task.Submit.Interactive:
			return cli.Usagef("carma logs -f shows its output, carma exec -it opens a shell in it", "task %d was submitted without -t and -i", task.ID)
		case task.Submit.TTY:
			if err := NotATerminal(a); err != nil {
				return cli.Usagef("run it in a terminal", "task %d has a terminal, and standard input is none", task.ID)
			}
		}
		signals, release := cli.AttachedSignals()
		defer release()
		t := &Terminal{
			One:   One{Client: client, Task: task.ID, Console: a.Console(), Signals: signals},
			Local: Local{In: a.In, Out: a.Out, Err: a.Err, Input: true, TTY: task.Submit.TTY, Keys: *keys},
		}
		end, err := t.Run(cmd.Context())
		return t.Finish(&end, err)
	}
	return cmd
}

// interactive returns the named task, or the caller's last running task with a terminal.
func interactive(ctx context.Context, client *api.Client, args []string) (api.Task, error) {
	if len(args) > 0 {
		ref, err := pick.Ref(ctx, client, args[0])
		if err != nil {
			return api.Task{}, err
		}
		return client.Task(ctx, ref)
	}
	list, err := client.Tasks(ctx, api.ListOptions{Mine: true, Phase: string(model.Running)})
	if err != nil {
		return api.Task{}, err
	}
	uid, err := client.UID(ctx)
	if err != nil {
		return api.Task{}, err
	}
	i := slices.IndexFunc(list, func(t api.Task) bool { return (t.Submit.TTY || t.Submit.Interactive) && t.UID == uid })
	if i < 0 {
		return api.Task{}, cli.Usagef("carma ps lists all; carma run -it starts one", "none of your running tasks has a terminal")
	}
	return list[i], nil
}

// Exec returns the command carma exec.
func Exec(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "exec [flags] TASK COMMAND [ARG...]",
		GroupID: cli.GroupTasks,
		Short:   "Run a command in a task that runs",
		Long: `Run a command in the container of a running task: as the task's user, with its
environment, on its GPUs and within its limits. It is for the task's owner and
administrators. The exit code is the command's; 126 and 127 as a shell's.

Ctrl-C is passed on; a second one leaves. A command whose caller has left gets
SIGHUP and is killed 10 s later; one whose daemon was killed goes on until it ends,
or its task does.`,
		Example: `  carma exec -it 17 bash
  carma exec @ nvidia-smi
  carma exec -i @ sh -c 'cat > /tmp/data' < data`,
		Args: func(_ *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return cli.Usagef("write for example: carma exec -it 17 bash", "no task named")
			case 1:
				return cli.Usagef("write for example: carma exec -it "+args[0]+" bash", "no command named")
			}
			if args[1] == "--" && len(args) == 2 {
				return cli.Usagef("write for example: carma exec -it "+args[0]+" bash", "no command named")
			}
			return cli.NoEmpty(args[:2])
		},
		ValidArgsFunction: pick.Complete(false),
	}
	var e api.ExecRequest
	var env, files []string
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.BoolVarP(&e.Interactive, "interactive", "i", false, "send it your input")
	flags.BoolVarP(&e.TTY, "tty", "t", false, "give it a terminal; with -i yours")
	flags.StringArrayVarP(&env, "env", "e", nil, "environment `KEY=value`; KEY alone takes yours")
	flags.StringArrayVar(&files, "env-file", nil, "read environment from a `file`")
	flags.StringVarP(&e.WorkDir, "workdir", "w", "", "working `folder` in the container")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if e.Env, err = cli.Environment(files, env); err != nil {
			return err
		}
		if e.TTY && e.Interactive {
			if err := NotATerminal(a); err != nil {
				return err
			}
		}
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		ref, err := pick.Ref(cmd.Context(), client, args[0])
		if err != nil {
			return err
		}
		if e.Command = args[1:]; e.Command[0] == "--" { // as in carma run and kubectl
			e.Command = e.Command[1:]
		}
		return execute(cmd.Context(), a, client, ref, e)
	}
	return cmd
}

// execute runs a command in a task, and returns the error with which to exit.
func execute(ctx context.Context, a *cli.App, client *api.Client, ref string, e api.ExecRequest) error {
	local := &Local{In: a.In, Out: a.Out, Err: a.Err, Input: e.Interactive, TTY: e.TTY}
	e.Size = local.Size()
	signals, release := cli.AttachedSignals()
	defer release()
	t, err := client.Exec(ctx, ref, e)
	if err != nil {
		return err
	}
	var input *Input
	if e.Interactive {
		input = NewInput(a.In)
	}
	asked := false
	exit, err := local.Talk(ctx, t, input, signals, func(s os.Signal) error {
		number, ok := s.(syscall.Signal)
		if asked || !ok {
			return errLeft
		}
		asked = true
		return t.Write(api.FrameSignal, []byte(strconv.Itoa(int(number))))
	})
	var cut *errCutOff
	switch {
	case errors.Is(err, errLeft):
		return cli.CodeError(cli.ExitDetached)
	case errors.As(err, &cut):
		a.Say("%s", cli.Printable(cut.why))
		return cli.CodeError(cli.ExitCarma)
	case cli.Away(err):
		a.Say("lost the daemon, and with it the command: it is ended, or goes on until the task ends")
		return cli.CodeError(cli.ExitCarma)
	case err != nil:
		return err
	}
	code, err := strconv.Atoi(exit)
	if err != nil || code < 0 || code > 255 {
		return cli.CodeError(cli.ExitCarma)
	}
	if code != 0 {
		return cli.CodeError(code)
	}
	return nil
}
