//go:build kubernetes

package test

import (
	"context"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/client"

	"carma/test/starts"
)

// watchStarts reads the events of the node's containerd, and returns the number of container
// starts by pod name. It does not depend on carma.
func (c *cluster) watchStarts() func() map[string]int {
	c.t.Helper()
	cli, err := client.New(filepath.Join(c.state, "containerd/socket"), client.WithDefaultNamespace("k8s.io"))
	if err != nil {
		c.t.Fatal(err)
	}
	var mu sync.Mutex
	seen := map[string]int{}
	note := func(ctx context.Context, id string) {
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
	c.t.Cleanup(starts.Follow(cli, note))
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(seen)
	}
}
