//go:build e2e

package test

import (
	"slices"
	"testing"

	"carma/runner/api"
)

// TestHostMemory: a data loader that takes too much host memory is limited to unallocated
// memory, and runs again with more. Its neighbours are not affected, including a task without a
// GPU. The daemon is killed meanwhile, and the allocations stay.
func TestHostMemory(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--all-host-mem", "512M", "--all-cpus", "2")
	s.start()
	host := func() *api.Host {
		var info api.Info
		s.decode(&info, "info", "--json")
		return info.Host
	}
	bare := s.submit("--gpus", "0", "--host-mem", "300M", tool, "env:NVIDIA_VISIBLE_DEVICES", "hog:64", "block:0")
	s.running(bare)
	loader := s.submit("--mem", "1G", tool, "hog:2000")
	waits := s.until(loader, "its first end", func(task *api.Task) bool { return task.WaitsCode == "host-memory" })
	first := waits.Attempts[0]
	if first.Outcome != "host-oom" || first.Host.Limit <= first.Host.Memory || first.Host.Limit > 212<<20 {
		t.Errorf("the loader's first attempt ended as %s, with %+v of 212 MiB that nobody had booked", first.Outcome, first.Host)
	}
	s.carma("run", "-d", "--gpus", "0", "--host-mem", "600M", tool).refused(t, 2, "--host-mem: 600 MiB of host memory asked for, a task may have at most 512 MiB")
	s.carma("run", "-d", "--gpus", "0", "--mem", "1G", tool).refused(t, 2, "--mem", "--host-mem")
	before := host()
	s.kill()
	s.start()
	if after := host(); after == nil || after.Booked != before.Booked || after.CPUsBooked != 1 || before.Booked != 300<<20 {
		t.Errorf("booked before the kill: %+v, after it: %+v", before, after)
	}
	if task := s.inspect(bare); task.Phase != "running" || len(task.Attempts) != 1 || len(task.Attempts[0].GPUs) != 0 {
		t.Errorf("the neighbour is %s after %d attempts", task.Phase, len(task.Attempts))
	}
	if out, _ := s.lines(bare); !slices.Contains(out, "NVIDIA_VISIBLE_DEVICES=void") {
		t.Errorf("the task without a GPU printed %q", out)
	}
	eventually(t, "the memory that the neighbour uses", func() bool { return host().Used >= 64<<20 })
	s.ok("stop", bare)
	last := s.finished(loader)
	if n := len(last.Attempts); last.ReasonCode != "host-oom-all" || n < 2 || last.Attempts[n-1].Host.Memory != 512<<20 {
		t.Errorf("the loader ended for the reason %s, after %+v", last.ReasonCode, last.Attempts)
	}
	if h := host(); h.Booked != 0 || h.CPUsBooked != 0 {
		t.Errorf("still booked: %+v", h)
	}
	s.verified()
	s.engine.gone(t, s.instance())
}
