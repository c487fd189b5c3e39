// Package mcp contains the command carma mcp: a server of the Model Context Protocol on
// standard input and output, with which coding agents can submit, inspect and await
// tasks. It is a client of the daemon's socket like any other command, with only its
// user's rights.
package mcp

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/runner/api"
)

// Command returns the command carma mcp.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "mcp",
		GroupID: cli.GroupOther,
		Short:   "Let a coding agent submit tasks, look at them and wait for them",
		Long: `Serve the Model Context Protocol on standard input and output. A coding agent
starts this command itself; docs/monitoring.md has the lines for its configuration.

The agent has your rights, no more: it can stop your tasks, not those of
others. Its tools are submit, list, show, wait, why, logs, gpus, stop and
estimate; submit and stop are marked as destructive, so that a client asks you
first.`,
		Example: `  claude mcp add carma -- carma mcp`,
		Args:    cli.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		err = Server(client, a.Version).Run(cmd.Context(), &mcp.IOTransport{Reader: io.NopCloser(a.In), Writer: nopCloser{a.Out}})
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	return cmd
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// Server returns the server with its tools.
func Server(client *api.Client, version string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "carma", Title: "carma, tasks on a shared GPU server", Version: version}, &mcp.ServerOptions{
		Instructions: "carma runs training tasks as containers on the GPUs of this machine. Submit one with submit, then wait; if it does not start, ask why. A task is named by its number or name. Memory is in bytes.",
	})
	t := tools{client}
	mcp.AddTool(s, reads("list", "List tasks: unfinished ones, or with all the finished ones too, newest first"), t.list)
	mcp.AddTool(s, reads("show", "Show one task: its request, estimate, attempts, progress and how it ended"), t.show)
	mcp.AddTool(s, reads("wait", "Wait until a task has ended, at most some seconds; call it again if it has not"), t.wait)
	mcp.AddTool(s, reads("why", "Explain why a task waits, GPU by GPU, or where it runs, or how it ended"), t.why)
	mcp.AddTool(s, reads("logs", "Read the last lines of a task's output"), t.logs)
	mcp.AddTool(s, reads("gpus", "List the GPUs: memory reserved and used, activity, tasks, faults"), t.gpus)
	no := false
	mcp.AddTool(s, &mcp.Tool{ // submitting may pull the image
		Name: "estimate", Description: "Say what would become of a task without submitting it: its memory, the GPUs it would get, or why it would wait",
		Annotations: &mcp.ToolAnnotations{Title: "Estimate a task", DestructiveHint: &no},
	}, t.estimate)
	mcp.AddTool(s, &mcp.Tool{
		Name: "submit", Description: "Submit a task; it is queued, and starts when a GPU has room",
		Annotations: &mcp.ToolAnnotations{Title: "Submit a task"},
	}, t.submit)
	yes := true
	mcp.AddTool(s, &mcp.Tool{
		Name: "stop", Description: "Stop a task for good; what it has not saved is lost",
		Annotations: &mcp.ToolAnnotations{Title: "Stop a task", DestructiveHint: &yes, IdempotentHint: true},
	}, t.stop)
	return s
}

// reads returns a tool that changes nothing.
func reads(name, what string) *mcp.Tool {
	return &mcp.Tool{Name: name, Description: what, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
}

// tools contains the actions of an agent. An agent gets an error as the tool's result.
type tools struct{ client *api.Client }

type taskRef struct {
	Task string `json:"task" jsonschema:"number or name of the task"`
}

func (r taskRef) check() error {
	if r.Task == "" {
		return errors.New("task is empty; give a number or a name, as list shows them")
	}
	return nil
}

func (t tools) show(ctx context.Context, _ *mcp.CallToolRequest, in taskRef) (*mcp.CallToolResult, any, error) {
	if err := in.check(); err != nil {
		return nil, nil, err
	}
	task, err := t.client.Task(ctx, in.Task)
	for i, kv := range task.Submit.Env { // keys of services are in the environment
		name, _, _ := strings.Cut(kv, "=")
		task.Submit.Env[i] = name + "=***"
	}
	return nil, task, err
}

func (t tools) why(ctx context.Context, _ *mcp.CallToolRequest, in taskRef) (*mcp.CallToolResult, any, error) {
	if err := in.check(); err != nil {
		return nil, nil, err
	}
	why, err := t.client.Why(ctx, in.Task)
	return nil, why, err
}

func (t tools) gpus(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
	gpus, err := t.client.GPUs(ctx)
	return nil, map[string]any{"gpus": gpus}, err
}

type stopIn struct {
	taskRef
	Reason string `json:"reason,omitempty" jsonschema:"why, for its record"`
}

func (t tools) stop(ctx context.Context, _ *mcp.CallToolRequest, in stopIn) (*mcp.CallToolResult, any, error) {
	if err := in.check(); err != nil {
		return nil, nil, err
	}
	task, err := t.client.Stop(ctx, in.Task, api.StopRequest{Reason: in.Reason})
	return nil, brief(&task), err
}
