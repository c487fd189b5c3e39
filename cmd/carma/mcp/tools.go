package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"carma/runner/api"
)

// taskLine is a task in a list. The tool show returns the complete task, which is long.
type taskLine struct {
	ID        int64     `json:"id"`
	Name      string    `json:"name"`
	User      string    `json:"user"`
	Phase     string    `json:"phase"`
	Image     string    `json:"image,omitempty"`
	Submitted time.Time `json:"submitted"`
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	ExitCode  *int      `json:"exit_code,omitempty"`
	Waits     string    `json:"waits,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Done      float64   `json:"share_done,omitempty"`
	ETA       time.Time `json:"eta,omitzero"`
}

func brief(t *api.Task) taskLine {
	l := taskLine{
		ID: t.ID, Name: t.Name, User: t.User, Phase: t.Phase, Image: t.Image, Submitted: t.Submitted, Started: t.Started, Ended: t.Ended,
		ExitCode: t.ExitCode, Waits: t.Waits, Reason: t.Reason,
	}
	if t.Progress != nil {
		l.Done, l.ETA = t.Progress.Share, t.Progress.ETA
	}
	return l
}

type listIn struct {
	All   bool   `json:"all,omitempty" jsonschema:"finished tasks too"`
	Mine  bool   `json:"mine,omitempty" jsonschema:"only your own"`
	Name  string `json:"name,omitempty" jsonschema:"only names that fit, with * and ? as in a shell"`
	Group string `json:"group,omitempty" jsonschema:"only tasks of this group"`
	Phase string `json:"phase,omitempty" jsonschema:"only these phases, with commas between: queued, running, succeeded, failed, ..."`
	Limit int    `json:"limit,omitempty" jsonschema:"at most so many, 1 to 500; without it 50"`
}

func (t tools) list(ctx context.Context, _ *mcp.CallToolRequest, in listIn) (*mcp.CallToolResult, any, error) {
	switch {
	case in.Limit == 0:
		in.Limit = 50
	case in.Limit < 1 || in.Limit > 500:
		return nil, nil, fmt.Errorf("limit %d is not between 1 and 500; nearest: %d", in.Limit, min(max(in.Limit, 1), 500))
	}
	all, err := t.client.Tasks(ctx, api.ListOptions{All: in.All, Mine: in.Mine, Name: in.Name, Group: in.Group, Phase: in.Phase, Limit: in.Limit})
	lines := make([]taskLine, len(all))
	for i := range all {
		lines[i] = brief(&all[i])
	}
	return nil, map[string]any{"tasks": lines, "more": len(lines) == in.Limit}, err
}

type waitIn struct {
	taskRef
	Seconds float64 `json:"seconds,omitempty" jsonschema:"at most so long, up to 600; without it 60"`
}

// mostWait is the longest time in seconds that one call waits, because clients abort slow
// calls.
const mostWait = 600

func (t tools) wait(ctx context.Context, _ *mcp.CallToolRequest, in waitIn) (*mcp.CallToolResult, any, error) {
	if err := in.check(); err != nil {
		return nil, nil, err
	}
	if in.Seconds == 0 {
		in.Seconds = 60
	}
	if !(in.Seconds > 0 && in.Seconds <= mostWait) {
		return nil, nil, fmt.Errorf("seconds %v is not above 0 and at most %d; wait several times for a long task", in.Seconds, mostWait)
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(in.Seconds*float64(time.Second)))
	defer cancel()
	var last api.Task
	err := t.client.Watch(limited, in.Task, func(task api.Task) error { last = task; return nil })
	if last.ID != 0 && limited.Err() != nil && ctx.Err() == nil {
		err = nil // a task that has not ended is a valid answer
	}
	return nil, map[string]any{"ended": last.Finished(), "task": brief(&last)}, err
}

type logsIn struct {
	taskRef
	Tail    int `json:"tail,omitempty" jsonschema:"so many of the last lines, up to 2000; without it 100"`
	Attempt int `json:"attempt,omitempty" jsonschema:"only this attempt; without it the last"`
}

// maxLine is the largest size of one line of output in an answer, in bytes.
const maxLine = 2000

func (t tools) logs(ctx context.Context, _ *mcp.CallToolRequest, in logsIn) (*mcp.CallToolResult, any, error) {
	if err := in.check(); err != nil {
		return nil, nil, err
	}
	if in.Tail == 0 {
		in.Tail = 100
	}
	if in.Tail < 1 || in.Tail > 2000 || in.Attempt < 0 {
		return nil, nil, fmt.Errorf("tail %d, attempt %d: tail is 1 to 2000, and attempts count from 1", in.Tail, in.Attempt)
	}
	var text strings.Builder
	task, err := t.client.Logs(ctx, in.Task, api.LogOptions{Tail: in.Tail, Attempt: in.Attempt}, func(l api.LogLine) error {
		fmt.Fprintf(&text, "%s: %s\n", l.Stream, strings.ToValidUTF8(l.Line[:min(len(l.Line), maxLine)], ""))
		return nil
	})
	return nil, map[string]any{"phase": task.Phase, "output": text.String()}, err
}

// submitIn is the part of a submission that agents need. options contains the other flags
// of carma run.
type submitIn struct {
	Image    string            `json:"image,omitempty" jsonschema:"container image; leave it out with conda, venv or host"`
	Command  []string          `json:"command,omitempty" jsonschema:"the program and its arguments, a list of words; no shell reads them"`
	Conda    string            `json:"conda,omitempty" jsonschema:"absolute folder of a conda environment on this machine, in place of an image"`
	Venv     string            `json:"venv,omitempty" jsonschema:"absolute folder of a virtual environment on this machine, in place of an image"`
	Host     bool              `json:"host,omitempty" jsonschema:"run the machine's own programs, in place of an image"`
	Workdir  string            `json:"workdir,omitempty" jsonschema:"working folder, absolute"`
	Env      map[string]string `json:"env,omitempty" jsonschema:"environment variables"`
	Mounts   []string          `json:"mounts,omitempty" jsonschema:"folders as source:target or source:target:ro, absolute"`
	Name     string            `json:"name,omitempty" jsonschema:"name of the task"`
	Settings map[string]string `json:"settings,omitempty" jsonschema:"further options of carma run without the dashes, each a text: gpus, mem (for example 12G), est-model, batch-size, priority, time, retries, exclusive, host-mem, cpus, ..."`
}

// request returns the submission that the input describes.
func (in *submitIn) request() (api.Submit, error) {
	s := api.Submit{Image: in.Image, Command: in.Command, Conda: in.Conda, Venv: in.Venv, Host: in.Host, Name: in.Name}
	s.WorkDir = in.Workdir
	if s.Image == "" && s.Conda == "" && s.Venv == "" && !s.Host {
		return s, errors.New("nothing to run: give image, or conda, venv or host with a command")
	}
	for k, v := range in.Env {
		s.Env = append(s.Env, k+"="+v)
	}
	for _, text := range in.Mounts {
		parts := strings.Split(text, ":")
		if len(parts) < 2 || len(parts) > 3 || len(parts) == 3 && parts[2] != "ro" && parts[2] != "rw" {
			return s, fmt.Errorf("mounts: %q is not source:target or source:target:ro", text)
		}
		s.Mounts = append(s.Mounts, api.Mount{Source: parts[0], Target: parts[1], ReadOnly: len(parts) == 3 && parts[2] == "ro"})
	}
	for name, text := range in.Settings {
		f, ok := api.FieldNamed(name)
		if !ok {
			return s, fmt.Errorf("settings: carma run has no option %q; `carma run --help` lists them", name)
		}
		if err := f.Set(&s, text); err != nil {
			return s, fmt.Errorf("settings: %s: %w", name, err)
		}
	}
	return s, nil
}

func (t tools) submit(ctx context.Context, _ *mcp.CallToolRequest, in submitIn) (*mcp.CallToolResult, any, error) {
	s, err := in.request()
	if err != nil {
		return nil, nil, err
	}
	got, err := t.client.Submit(ctx, s)
	return nil, got, err
}

func (t tools) estimate(ctx context.Context, _ *mcp.CallToolRequest, in submitIn) (*mcp.CallToolResult, any, error) {
	s, err := in.request()
	if err != nil {
		return nil, nil, err
	}
	p, err := t.client.Preview(ctx, api.Submission{Tasks: []api.Submit{s}})
	return nil, p, err
}
