//go:build kubernetes

package kubernetes

import (
	"context"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/containerd/containerd/api/events"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/typeurl/v2"
)

// watchStarts listens to the node's containerd, and tells how often a container of each
// attempt was started, by its pod's name. A witness of its own: carma is not asked.
func (c *cluster) watchStarts() func() map[string]int {
	c.t.Helper()
	cli, err := client.New(filepath.Join(c.state, "containerd/socket"), client.WithDefaultNamespace("k8s.io"))
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stream, _ := cli.Subscribe(ctx, `topic=="/tasks/start"`)
	var mu sync.Mutex
	seen := map[string]int{}
	note := func(id string) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		found, err := cli.LoadContainer(ctx, id)
		if err != nil {
			return
		}
		labels, err := found.Labels(ctx)
		if err != nil || labels["io.cri-containerd.kind"] != "container" || labels["io.kubernetes.container.name"] != "task" {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		seen[labels["io.kubernetes.pod.name"]]++
	}
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
						note(start.ContainerID)
					}
				}
			}
		}
	})
	c.t.Cleanup(func() {
		cancel()
		done.Wait()
		_ = cli.Close()
	})
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(seen)
	}
}
