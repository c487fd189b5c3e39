package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"carma/configs"
	"carma/runner/api"
)

// app is what all commands share.
type app struct {
	in       io.Reader
	out, err io.Writer
	saying   sync.Mutex
}

func newApp(in io.Reader, out, err io.Writer) *app { return &app{in: in, out: out, err: err} }

// main runs one command line and returns the exit code.
func (a *app) main(args []string) int {
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(context.Background())
	return a.report(cmd, err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "carma COMMAND",
		Short: "Run containers on a shared GPU server, several to a GPU where they fit",
		Long: `carma runs training tasks as containers on the GPUs of this machine. It
estimates each task's GPU memory, puts several tasks on one GPU when memory and
activity allow, and relaunches tasks that ran out of GPU memory.

Exit codes: 0 done, 1 failed, 2 wrong usage or no daemon, 125 carma itself
could not do it; an attached run and wait exit with the task's own code.`,
		Example: `  carma daemon --gpus sim:dgx-station-a100 &
  carma run --est-model resnet50 --batch-size 64 my/training:1 --epochs 3
  carma ps; carma logs -f 17; carma why 17; carma gpus`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(wrongFlag)
	root.SetHelpCommand(helpCommand())
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { fmt.Fprint(a.out, helpText(cmd)) })
	configs.AddFlags(root.PersistentFlags(), "socket")
	root.PersistentFlags().String("config", "", "read this configuration `file` and no other")
	root.AddCommand(
		a.daemonCommand(), a.runCommand(), a.suiteCommand(), a.psCommand(), a.logsCommand(), a.waitCommand(), a.stopCommand(),
		a.rmCommand(), a.inspectCommand(), a.whyCommand(), a.gpusCommand(), a.mpsCommand(), a.infoCommand(), a.doctorCommand(),
		a.replayCommand(), a.traceCommand(), a.estimateCommand(), a.modelsCommand(), a.imageCommand(), a.historyCommand(), a.journalCommand(), a.configCommand(), a.completionCommand(), a.versionCommand(),
	)
	for _, c := range root.Commands() {
		c.DisableFlagsInUseLine = true
	}
	return root
}

// client returns the client of the configured daemon; nothing is sent yet.
func (a *app) client(cmd *cobra.Command) (*api.Client, error) {
	config, from, err := configs.Load(cmd.Flags())
	if err != nil {
		return nil, err
	}
	client := api.NewClient(configs.ClientSocket(config, from))
	client.Stopping = func() { a.say("the daemon is stopping; waiting for the next one") }
	return client, nil
}

// json prints a value as people and jq read it.
func (a *app) json(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "    ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// say prints one line about what carma does, on stderr.
func (a *app) say(format string, args ...any) {
	a.saying.Lock()
	defer a.saying.Unlock()
	fmt.Fprintf(a.err, "carma: "+format+"\n", args...)
}

func (a *app) println(args ...any) { fmt.Fprintln(a.out, args...) }

func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.out, format, args...) }

// addJSON adds --json to a command that lists.
func addJSON(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "print JSON")
}
