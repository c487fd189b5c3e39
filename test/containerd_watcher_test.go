//go:build e2e && containerd

package test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/containerd/containerd/api/events"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/typeurl/v2"

	engines "carma/containers/containerstest/engine"
)

// containerdWatcher follows containerd's events and counts starts.
type containerdWatcher struct {
	mu   sync.Mutex
	seen map[string]int // number of starts, by container
}

func watchContainerd(t *testing.T, c *engines.Containerd) *containerdWatcher {
	t.Helper()
	cli, err := client.New(c.Address(), client.WithDefaultNamespace("carma"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &containerdWatcher{seen: map[string]int{}}
	stream, _ := cli.Subscribe(ctx, `topic=="/tasks/start"`)
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case e, ok := <-stream:
				if !ok {
					return
				}
				if ev, err := typeurl.UnmarshalAny(e.Event); err == nil {
					if start, ok := ev.(*events.TaskStart); ok {
						w.mu.Lock()
						w.seen[start.ContainerID]++
						w.mu.Unlock()
					}
				}
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
		_ = cli.Close()
	})
	return w
}

// starts reads task and attempt from the containers' names:
// carma-INSTANCE-TASK-ATTEMPT.
func (w *containerdWatcher) starts(instance string) map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := map[string]int{}
	for name, starts := range w.seen {
		if rest, ok := strings.CutPrefix(name, "carma-"+instance+"-"); ok {
			n[strings.Replace(rest, "-", ".", 1)] += starts
		}
	}
	return n
}
