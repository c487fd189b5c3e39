package server

import (
	"testing"

	"carma/runner/api"
)

// TestHostLine: allocations of suites' helpers are shown separately.
func TestHostLine(t *testing.T) {
	h := &api.Host{Memory: 64 << 30, Booked: 12 << 30, Used: 3 << 30, CPUs: 8, CPUsBooked: 2}
	if got := HostLine(h); got != "memory 12.0 GiB booked of 64.0 GiB, 3.0 GiB used by tasks; processors 2 booked of 8" {
		t.Error(got)
	}
	h.Helpers = []api.HostHelpers{{Suite: "lab", Memory: 1 << 30}, {Suite: "exp", Memory: 2 << 30}}
	if got := HostLine(h); got != "memory 12.0 GiB booked of 64.0 GiB (3.0 GiB by helpers of suites), 3.0 GiB used by tasks; processors 2 booked of 8" {
		t.Error(got)
	}
}
