package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"carma/containers"
)

// RetryAfter is the header in which a stopping daemon says when to ask again.
const RetryAfter = "Retry-After"

// Client talks to a daemon over its unix socket, or over TLS. Safe for concurrent use.
type Client struct {
	socket string // its path, or the address
	base   string // what paths of requests begin with
	remote bool
	http   *http.Client
	// Stopping, if not nil, is called when the daemon is stopping. A question
	// is then repeated for a while: the next daemon may answer it. A request
	// that changes something is not repeated: it may have been carried out.
	Stopping func()
	// Registries, if not nil, returns the user's credentials for the registries of images.
	// They are sent with requests that name images, and not over TLS.
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
// what tells who their sender is.
func NewRemote(address string, by *http.Client) *Client {
	return &Client{socket: address, base: address, remote: true, http: by}
}

// Socket returns the path or the address that the client connects to.
func (c *Client) Socket() string { return c.socket }

// Remote reports whether the daemon is reached over TLS: it may be another machine's.
func (c *Client) Remote() bool { return c.remote }

// Submit submits a task; when it returns without error the task is durable.
func (c *Client) Submit(ctx context.Context, s Submit) (Submitted, error) {
	return call[Submitted](ctx, c, http.MethodPost, "/v1/tasks", s)
}

// ListOptions chooses tasks. The zero value lists the unfinished ones.
type ListOptions struct {
	All   bool   // finished ones too
	User  string // only this user's
	Limit int    // newest first; 0: all
	// Before: only tasks with lower numbers. After, of a group: only tasks with
	// higher ones. 0: any.
	Before, After int64
	Group         string // only those of this group
	Label         string // key or key=value of a user label
	Mine          bool   // only the caller's
	Name          string // only those whose name fits, with * and ? as in a shell
	Phase         string // only these, separated by commas
	// Since leaves out what had ended before, Until what was submitted then or
	// later; zero: any.
	Since, Until time.Time
}

// Fits reports whether a task is one of those that are asked for, pages left out;
// uid is the caller's.
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

// HasPhase reports whether tasks in this phase are asked for.
func (o *ListOptions) HasPhase(phase string) bool {
	return o.Phase == "" || slices.Contains(strings.Split(o.Phase, ","), phase)
}

// Tasks lists tasks, newest first. It asks for one page after the other.
func (c *Client) Tasks(ctx context.Context, o ListOptions) ([]Task, error) {
	all := []Task{}
	for want := o.Limit; ; {
		some, next, err := c.tasks(ctx, o)
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

// maxPage is the most tasks a page may be asked for.
const maxPage = 1000

// tasks returns one page, and the number to ask with for the next; 0: there is
// none.
func (c *Client) tasks(ctx context.Context, o ListOptions) ([]Task, int64, error) {
	q := url.Values{}
	if o.All {
		q.Set("all", "true")
	}
	if o.User != "" {
		q.Set("user", o.User)
	}
	if o.Limit > 0 {
		q.Set("limit", strconv.Itoa(min(o.Limit, maxPage)))
	}
	if o.Group != "" {
		q.Set("group", o.Group)
	}
	if o.Label != "" {
		q.Set("label", o.Label)
	}
	if o.Mine {
		q.Set("mine", "true")
	}
	if o.Name != "" {
		q.Set("name", o.Name)
	}
	if o.Phase != "" {
		q.Set("phase", o.Phase)
	}
	if !o.Since.IsZero() {
		q.Set("since", o.Since.Format(time.RFC3339Nano))
	}
	if !o.Until.IsZero() {
		q.Set("until", o.Until.Format(time.RFC3339Nano))
	}
	if o.Before > 0 {
		q.Set("before", strconv.FormatInt(o.Before, 10))
	}
	resp, err := c.do(ctx, http.MethodGet, "/v1/tasks?"+q.Encode(), nil)
	if err != nil {
		return nil, 0, err
	}
	list, err := read[[]Task](c, resp, "the list of tasks")
	next, _ := strconv.ParseInt(resp.Header.Get("Carma-Next"), 10, 64)
	return list, next, err
}

// Task returns one task by its number or name.
func (c *Client) Task(ctx context.Context, ref string) (Task, error) {
	return call[Task](ctx, c, http.MethodGet, taskPath(ref), nil)
}

// Stop asks a task to end; it returns when the request is journaled.
func (c *Client) Stop(ctx context.Context, ref string, r StopRequest) (Task, error) {
	return call[Task](ctx, c, http.MethodPost, taskPath(ref)+"/stop", r)
}

// Remove deletes a finished task with its output.
func (c *Client) Remove(ctx context.Context, ref string) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, taskPath(ref), nil)
	return err
}

// Why explains a task's state.
func (c *Client) Why(ctx context.Context, ref string) (Why, error) {
	return call[Why](ctx, c, http.MethodGet, taskPath(ref)+"/why", nil)
}

// GPUs lists the GPUs in index order.
func (c *Client) GPUs(ctx context.Context) ([]GPU, error) {
	return call[[]GPU](ctx, c, http.MethodGet, "/v1/gpus", nil)
}

// Info describes the daemon.
func (c *Client) Info(ctx context.Context) (Info, error) {
	return call[Info](ctx, c, http.MethodGet, "/v1/info", nil)
}

// Quotas lists what users and groups have and may have; those of names, users or @groups
// of the machine, even if carma knows of no task of theirs.
func (c *Client) Quotas(ctx context.Context, names ...string) ([]Account, error) {
	return call[[]Account](ctx, c, http.MethodGet, "/v1/quotas?"+url.Values{"name": names}.Encode(), nil)
}

// Doctor runs the daemon's self-checks.
func (c *Client) Doctor(ctx context.Context) ([]Check, error) {
	return call[[]Check](ctx, c, http.MethodGet, "/v1/doctor", nil)
}

// Prove starts a container of an image on each GPU, like a task, and returns
// the limits that it saw.
func (c *Client) Prove(ctx context.Context, image string) ([]Check, error) {
	return call[[]Check](ctx, c, http.MethodPost, "/v1/prove", ProveRequest{Image: image})
}

// SetSpeed changes how fast a simulated server's time runs.
func (c *Client) SetSpeed(ctx context.Context, speed float64) (Info, error) {
	return call[Info](ctx, c, http.MethodPut, "/v1/speed", SpeedChange{Speed: speed})
}

// Drain lets the daemon start nothing more and end with its last running task.
func (c *Client) Drain(ctx context.Context) (Info, error) {
	return call[Info](ctx, c, http.MethodPost, "/v1/drain", nil)
}

// LogOptions chooses what Logs returns.
type LogOptions struct {
	Follow  bool // go on until the task is finished, across attempts
	Tail    int  // only the last lines of what there is; 0: all
	Attempt int  // only this attempt; 0: all
}

// Logs streams a task's output to fn, in order. With Follow it waits for a
// task that has not started, goes on across relaunches, and returns the
// finished task; without, the task as it is now.
func (c *Client) Logs(ctx context.Context, ref string, o LogOptions, fn func(LogLine) error) (Task, error) {
	q := url.Values{}
	if o.Follow {
		q.Set("follow", "true")
	}
	if o.Tail > 0 {
		q.Set("tail", strconv.Itoa(o.Tail))
	}
	if o.Attempt > 0 {
		q.Set("attempt", strconv.Itoa(o.Attempt))
	}
	var last Task
	err := c.stream(ctx, taskPath(ref)+"/logs?"+q.Encode(), func(event string, data []byte) error {
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
	return c.watch(ctx, taskPath(ref)+"/events", fn)
}

// WatchAll streams every task's changes from now on.
func (c *Client) WatchAll(ctx context.Context, fn func(Task) error) error {
	return c.watch(ctx, "/v1/events", fn)
}

func (c *Client) watch(ctx context.Context, path string, fn func(Task) error) error {
	return c.stream(ctx, path, func(event string, data []byte) error {
		if event != "task" {
			return nil
		}
		var t Task
		if err := json.Unmarshal(data, &t); err != nil {
			return err
		}
		return fn(t)
	})
}

func taskPath(ref string) string { return "/v1/tasks/" + url.PathEscape(ref) }
