//go:build e2e && containerd

package test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/containerd/containerd/v2/client"

	engines "carma/containers/containerstest/engine"
	"carma/test/starts"
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
	w := &containerdWatcher{seen: map[string]int{}}
	t.Cleanup(starts.Follow(cli, func(_ context.Context, id string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen[id]++
	}))
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
