package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"carma/containers"
)

// RetryAfter is the header with which a stopping daemon requests a later retry.
const RetryAfter = "Retry-After"

// Client talks to a daemon over its unix socket, or over TLS. It is safe for concurrent
// use.
type Client struct {
	socket string // path of the socket, or the address
	base   string // prefix of the paths of requests
	remote bool
	http   *http.Client
	// Stopping, if not nil, is called when the daemon is stopping. A request that changes
	// nothing is then repeated for a while, because the next daemon may answer it. A request
	// that changes something is not repeated, because it may have been carried out.
	Stopping func()
	// Registries, if not nil, returns the user's credentials for the registries of images.
	// They are sent with requests that name images, but not over TLS.
	Registries func(images []string) map[string]containers.Credential
}

// NewClient returns a client for the daemon at a socket path. It does not
// connect yet.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return &Client{socket: socket, base: "http://carma", http: &http.Client{Transport: &http.Transport{
		DialContext: dial, MaxIdleConnsPerHost: 64,
	}}}
}

// NewRemote returns a client for a daemon at https://host:port. by sends requests with
// the sender's credentials.
func NewRemote(address string, by *http.Client) *Client {
	return &Client{socket: address, base: address, remote: true, http: by}
}

// Socket returns the path or the address to which the client connects.
func (c *Client) Socket() string { return c.socket }

// Remote reports whether the daemon is reached over TLS, possibly on another machine.
func (c *Client) Remote() bool { return c.remote }

// Submit submits a task. When it returns without error, the task is durable.
func (c *Client) Submit(ctx context.Context, s Submit) (Submitted, error) {
	return SubmitTask.send(ctx, c, WithImages[Submit]{Body: s})
}

// ListOptions select tasks. The zero value selects the unfinished ones.
type ListOptions struct {
	All    bool      `query:"all" doc:"finished ones too"`
	User   string    `query:"user"`
	Group  string    `query:"group"`
	Label  string    `query:"label" doc:"key or key=value"`
	Mine   bool      `query:"mine" doc:"only the caller's"`
	Name   string    `query:"name" maxLength:"200" doc:"only names that fit, with * and ? as in a shell"`
	Phase  string    `query:"phase" doc:"only these phases, separated by commas"`
	Since  time.Time `query:"since" doc:"leave out what had ended before"`
	Until  time.Time `query:"until" doc:"leave out what was submitted then or later"`
	Limit  int       `query:"limit" minimum:"0" maximum:"1000" doc:"at most so many on one page; 0: 1000"`
	Before int64     `query:"before" minimum:"0" doc:"only tasks with lower numbers: the next page"`
	After  int64     // of a group: only tasks with higher numbers, or 0
}

// Fits reports whether a task matches the options, except paging; uid is the caller's.
func (o *ListOptions) Fits(t *Task, uid int) bool {
	fits := true
	if o.Name != "" {
		fits, _ = path.Match(o.Name, t.Name)
	}
	key, value, both := strings.Cut(o.Label, "=")
	has, labelled := t.Submit.Labels[key]
	return fits && (o.All || !t.Finished()) && (!o.Mine || t.UID == uid) && (o.User == "" || t.User == o.User) && (o.Group == "" || t.Group == o.Group) &&
		(o.Label == "" || labelled && (!both || has == value)) && o.HasPhase(t.Phase) &&
		(o.Since.IsZero() || !t.Finished() || !t.Ended.Before(o.Since)) && (o.Until.IsZero() || t.Submitted.Before(o.Until))
}

// HasPhase reports whether the options select tasks in this phase.
func (o *ListOptions) HasPhase(phase string) bool {
	return o.Phase == "" || slices.Contains(strings.Split(o.Phase, ","), phase)
}

// Tasks lists tasks, newest first. It requests one page after the other.
func (c *Client) Tasks(ctx context.Context, o ListOptions) ([]Task, error) {
	all := []Task{}
	for want := o.Limit; ; {
		o.Limit = min(o.Limit, maxPage)
		some, next, err := ListTasks.sendPage(ctx, c, o)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if o.Limit = want - len(all); next == 0 || (want > 0 && o.Limit <= 0) {
			return all, nil
		}
		o.Limit, o.Before = max(0, o.Limit), next
	}
}

// maxPage is the largest number of tasks on a page.
const maxPage = 1000

// Task returns one task by its number or name.
func (c *Client) Task(ctx context.Context, ref string) (Task, error) {
	return GetTask.send(ctx, c, TaskPath{ref})
}

// Stop requests the end of a task. It returns when the request is journaled.
func (c *Client) Stop(ctx context.Context, ref string, r StopRequest) (Task, error) {
	return StopTask.send(ctx, c, onTask(ref, r))
}

// Remove deletes a finished task with its output.
func (c *Client) Remove(ctx context.Context, ref string) error {
	_, err := RemoveTask.send(ctx, c, TaskPath{ref})
	return err
}

// Why explains a task's state.
func (c *Client) Why(ctx context.Context, ref string) (Why, error) {
	return GetWhy.send(ctx, c, TaskPath{ref})
}

// GPUs lists the GPUs in index order.
func (c *Client) GPUs(ctx context.Context) ([]GPU, error) { return ListGPUs.send(ctx, c, None{}) }

// Info describes the daemon.
func (c *Client) Info(ctx context.Context) (Info, error) { return GetInfo.send(ctx, c, None{}) }

// Quotas lists the usage and quotas of users and groups. Given names are users or @groups
// of the machine; they are listed even without any task.
func (c *Client) Quotas(ctx context.Context, names ...string) ([]Account, error) {
	return GetQuotas.send(ctx, c, QuotaOptions{names})
}

// Doctor runs the daemon's self-checks.
func (c *Client) Doctor(ctx context.Context) ([]Check, error) { return GetDoctor.send(ctx, c, None{}) }

// Prove starts a container of an image on each GPU, like a task, and returns the limits
// that applied in it.
func (c *Client) Prove(ctx context.Context, image string) ([]Check, error) {
	return ProveGPUs.send(ctx, c, With[ProveRequest]{ProveRequest{Image: image}})
}

// SetSpeed changes the speed of a simulated server's time.
func (c *Client) SetSpeed(ctx context.Context, speed float64) (Info, error) {
	return SetSpeed.send(ctx, c, With[SpeedChange]{SpeedChange{Speed: speed}})
}

// Drain makes the daemon launch nothing more and end with its last running task.
func (c *Client) Drain(ctx context.Context) (Info, error) { return DrainDaemon.send(ctx, c, None{}) }

// Logs streams a task's output to fn, in order. With Follow it waits for a task that has
// not started, continues across relaunches, and returns the finished task; otherwise it
// returns the task's present state.
func (c *Client) Logs(ctx context.Context, ref string, o LogOptions, fn func(LogLine) error) (Task, error) {
	var last Task
	err := stream(ctx, c, ReadLogs, LogsOfTask{TaskPath{ref}, o}, func(event string, data []byte) error {
		switch event {
		case "log":
			var l LogLine
			if err := json.Unmarshal(data, &l); err != nil {
				return err
			}
			return fn(l)
		case "task":
			return json.Unmarshal(data, &last)
		}
		return nil
	})
	if err == nil && last.ID == 0 {
		err = &NoDaemonError{Socket: c.socket, Err: io.ErrUnexpectedEOF}
	}
	return last, err
}

// ErrStop may be returned by a stream's callback to end it without an error.
var ErrStop = errors.New("stop")

// Watch streams the states of one task, the present one first, to fn until it
// is finished or fn returns ErrStop.
func (c *Client) Watch(ctx context.Context, ref string, fn func(Task) error) error {
	return stream(ctx, c, WatchTask, TaskPath{ref}, tasksTo(fn))
}

// WatchAll streams every task's changes from now on.
func (c *Client) WatchAll(ctx context.Context, fn func(Task) error) error {
	return stream(ctx, c, WatchTasks, None{}, tasksTo(fn))
}

// tasksTo passes the tasks of a stream to fn.
func tasksTo(fn func(Task) error) func(string, []byte) error {
	return func(event string, data []byte) error {
		if event != "task" {
			return nil
		}
		var t Task
		if err := json.Unmarshal(data, &t); err != nil {
			return err
		}
		return fn(t)
	}
}
