//go:build e2e

package test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/runner/label"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"
)

// watcher follows an engine's event stream. It records the lives of carma's
// containers as the engine itself reports them.
type watcher struct {
	cli *client.Client

	mu      sync.Mutex
	lives   map[string]*life // by container id
	changed chan struct{}    // closed at the next event
	err     error            // set when the stream has ended
}

// life is the life of one container. Times are the engine's.
type life struct {
	id, instance  string
	task, attempt int
	grant         int64
	gpus          []string
	starts        []time.Time
	died          time.Time
	code          int
	signals       []string // signals sent to it through the engine
	removed       bool
	read          chan struct{} // closed when follow has ended
	stdout        string
	stderr        string
}

// watch begins to watch the engine at host, DOCKER_HOST if empty.
func watch(ctx context.Context, host string) (*watcher, error) {
	opts := []client.Opt{client.FromEnv}
	if host != "" {
		opts = append(opts, client.WithHost(host))
	}
	cli, err := client.New(opts...)
	if err != nil {
		return nil, err
	}
	if _, err := cli.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return nil, err
	}
	w := &watcher{cli: cli, lives: map[string]*life{}, changed: make(chan struct{})}
	stream := cli.Events(ctx, client.EventsListOptions{
		Filters: client.Filters{}.Add("type", "container").Add("label", label.Instance),
	})
	go func() {
		for {
			select {
			case m := <-stream.Messages:
				w.add(ctx, m)
			case err := <-stream.Err:
				w.mu.Lock()
				w.err = fmt.Errorf("the engine's events ended: %w", err)
				w.mu.Unlock()
				return
			}
		}
	}()
	return w, nil
}

func (w *watcher) add(ctx context.Context, m events.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	labels := m.Actor.Attributes
	l := w.lives[m.Actor.ID]
	if l == nil {
		l = &life{id: m.Actor.ID, instance: labels[label.Instance], gpus: strings.Split(labels[label.GPUs], ","), read: make(chan struct{})}
		l.task, _ = strconv.Atoi(labels[label.Task])
		l.attempt, _ = strconv.Atoi(labels[label.Attempt])
		l.grant, _ = strconv.ParseInt(labels[label.Grant], 10, 64)
		w.lives[l.id] = l
	}
	at := time.Unix(0, m.TimeNano)
	switch m.Action {
	case events.ActionStart:
		l.starts = append(l.starts, at)
		if len(l.starts) == 1 {
			go w.follow(ctx, l)
		}
	case events.ActionDie:
		l.died = at
		l.code, _ = strconv.Atoi(labels["exitCode"])
	case events.ActionKill:
		l.signals = append(l.signals, labels["signal"])
	case events.ActionDestroy:
		l.removed = true
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// follow reads a container's output from the engine, independently of the daemon.
// If the container is removed early, the end of the output may be missing.
func (w *watcher) follow(ctx context.Context, l *life) {
	var out, err bytes.Buffer
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		l.stdout, l.stderr = out.String(), err.String()
		close(l.read)
	}()
	body, logErr := w.cli.ContainerLogs(ctx, l.id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Follow: true})
	if logErr != nil {
		return
	}
	defer func() { _ = body.Close() }()
	_, _ = stdcopy.StdCopy(&out, &err, body)
}

// of returns the containers of one daemon in their present state, in the order of
// their numbers.
func (w *watcher) of(instance string) []life {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []life
	for _, l := range w.lives {
		if l.instance == instance {
			list = append(list, *l)
		}
	}
	slices.SortFunc(list, func(a, b life) int {
		if a.task != b.task {
			return a.task - b.task
		}
		return a.attempt - b.attempt
	})
	return list
}

// starts returns the number of starts of each attempt's container, by task.attempt.
func (w *watcher) starts(instance string) map[string]int {
	n := map[string]int{}
	for _, l := range w.of(instance) {
		n[fmt.Sprintf("%d.%d", l.task, l.attempt)] += len(l.starts)
	}
	return n
}

// until waits until the containers of a daemon satisfy a condition.
func (w *watcher) until(t *testing.T, instance, what string, ok func([]life) bool) []life {
	t.Helper()
	deadline := time.After(patience)
	for {
		w.mu.Lock()
		changed, err := w.changed, w.err
		w.mu.Unlock()
		list := w.of(instance)
		if ok(list) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%s: not within %s; the containers are %s", what, patience, brief(list))
		}
	}
}

// gone waits until all of a daemon's containers have ended and been removed. It
// also asks the engine whether any are left.
func (w *watcher) gone(t *testing.T, instance string) []life {
	t.Helper()
	list := w.until(t, instance, "no containers are left", func(list []life) bool {
		return !slices.ContainsFunc(list, func(l life) bool { return !l.removed })
	})
	left, err := w.list(t.Context(), instance)
	if err != nil || len(left) > 0 {
		t.Errorf("containers with the daemon's label are left: %v, %v", left, err)
	}
	return list
}

// list asks the engine for a daemon's containers, with the ended ones.
func (w *watcher) list(ctx context.Context, instance string) ([]string, error) {
	res, err := w.cli.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: client.Filters{}.Add("label", label.Instance+"="+instance),
	})
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for _, c := range res.Items {
		ids[c.ID] = true
	}
	return slices.Sorted(maps.Keys(ids)), nil
}

// remove removes a daemon's containers from the engine.
func (w *watcher) remove(instance string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ids, err := w.list(ctx, instance)
	if err != nil {
		return err
	}
	for _, id := range ids {
		_, err = w.cli.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) { // the daemon is just removing it
			return err
		}
	}
	return nil
}

func brief(list []life) string {
	var b strings.Builder
	for _, l := range list {
		state := "made"
		switch {
		case l.removed:
			state = fmt.Sprintf("removed, code %d", l.code)
		case !l.died.IsZero():
			state = fmt.Sprintf("died with %d", l.code)
		case len(l.starts) > 0:
			state = "running"
		}
		fmt.Fprintf(&b, "\n  task %d attempt %d: %s", l.task, l.attempt, state)
	}
	return b.String()
}
