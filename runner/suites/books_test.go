package suites

import (
	"errors"
	"strings"
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/helpers"
	"carma/runner/loop"
	"carma/runner/loop/looptest"
	"carma/runner/machine"
	"carma/runner/request"
)

// TestBooks: helpers get what the machine has left. More than the machine has is refused for
// good, more than is left now is not. A check changes nothing.
func TestBooks(t *testing.T) {
	l := looptest.New(t)
	now := l.Clock.Now()
	found := loop.Fact(model.HostsFound{At: now, Hosts: []model.HostInfo{{Memory: units.GiB, CPUs: 1000}}})
	if _, err := l.Apply([]*loop.Change{found}); err != nil {
		t.Fatal(err)
	}
	defer l.Run()()
	b := Books{Loop: l.Loop, Memory: machine.NewMemory("/nowhere"), Bounds: func() machine.Bounds { return machine.Bounds{} }}
	ctx := t.Context()
	refused := func(what string, err error, part string) {
		t.Helper()
		if no, ok := errors.AsType[*request.Error](err); !ok || no.Status != 422 || !strings.Contains(no.Text, part) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("too much memory", b.Book(ctx, "0/lab", helpers.Share{HostMem: 2 << 30}, helpers.Look), "all-host-mem")
	refused("too many processors", b.Book(ctx, "0/lab", helpers.Share{CPUs: 7}, helpers.Ask), "all-cpus")
	if err := b.Book(ctx, "0/lab", helpers.Share{HostMem: 700 << 20}, helpers.Ask); err != nil {
		t.Fatal(err)
	}
	full, ok := errors.AsType[*helpers.FullError](b.Book(ctx, "1/lab", helpers.Share{HostMem: 700 << 20}, helpers.Ask))
	if !ok || !strings.Contains(full.Text, "it needs 700 MiB of host memory") {
		t.Errorf("no room: %v", full)
	}
	if err := b.Book(ctx, "1/lab", helpers.Share{HostMem: 700 << 20}, helpers.Look); err != nil {
		t.Errorf("it would have room at another time: %v", err)
	}
	if got := b.suites(); len(got) != 1 || got[0] != "0/lab" {
		t.Errorf("booked for %q", got)
	}
}
