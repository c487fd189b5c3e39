package runner

import (
	"context"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/runner/api"
)

// TestEndedWithARestart: a container that ends by SIGTERM while its engine restarts is run
// again, also if the engine answers when the end is examined.
func TestEndedWithARestart(t *testing.T) {
	g := newRig(t)
	var ended atomic.Bool
	g.script("train", func(context.Context, *containerstest.Process) int {
		if ended.Swap(true) {
			return 0
		}
		return 128 + int(syscall.SIGTERM)
	})
	g.engine.FailNext(containerstest.OpLogs, containers.ErrUnavailable)
	v := g.finished(g.run(api.Submit{Image: "train", Mem: int64(units.GiB)}))
	if first := v.Attempts[0]; v.Phase != "succeeded" || first.Outcome != "infrastructure" || !first.Blameless || !strings.Contains(first.Message, "ended with the container engine") {
		t.Errorf("it is %s (%s); its first attempt ended as %+v", v.Phase, v.Reason, first)
	}
}
