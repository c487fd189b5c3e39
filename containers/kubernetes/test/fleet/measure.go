//go:build kubernetes

package fleet

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
)

// Allocations watches the claims. The returned function waits for a number of allocations, and
// returns the time at which it first saw each.
func (f *Fleet) Allocations(t *testing.T) func(int) map[string]time.Time {
	type seen struct {
		name string
		at   time.Time
	}
	news := make(chan seen, 64*1024)
	informed(t, f.resource, "resourceclaims", &resourcev1.ResourceClaim{}, func(o any) {
		if c := o.(*resourcev1.ResourceClaim); c.Status.Allocation != nil {
			news <- seen{c.Name, time.Now()}
		}
	})
	return func(n int) map[string]time.Time {
		at := map[string]time.Time{}
		for len(at) < n {
			select {
			case s := <-news:
				if _, twice := at[s.name]; !twice {
					at[s.name] = s.at
				}
			case <-time.After(2 * time.Minute):
				return at
			}
		}
		return at
	}
}

// NotOver checks that no GPU has more memory allocated than it owns.
func (f *Fleet) NotOver(t *testing.T, bytes int64) {
	t.Helper()
	var list resourcev1.ResourceClaimList
	if err := f.resource.Get().Resource("resourceclaims").Do(context.Background()).Into(&list); err != nil {
		t.Fatal(err)
	}
	booked := map[string]int64{}
	for _, c := range list.Items {
		for _, r := range c.Status.Allocation.Devices.Results {
			q := r.ConsumedCapacity["memory"]
			if booked[r.Pool+r.Device] += q.Value(); booked[r.Pool+r.Device] > bytes {
				t.Errorf("%s %s: %d bytes are booked", r.Pool, r.Device, booked[r.Pool+r.Device])
			}
		}
	}
}

// CPU returns the CPU time in seconds of each program of the control plane, and of this
// process.
func (f *Fleet) CPU() map[string]float64 {
	out := map[string]float64{"": CPUOf(os.Getpid())}
	for _, name := range []string{"etcd", "apiserver", "scheduler", "controllers"} {
		text, err := os.ReadFile(filepath.Join(f.state, "run", name+".pid"))
		must(err)
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		must(err)
		out[name] = CPUOf(pid)
	}
	return out
}

// CPUOf returns the CPU time in seconds of a process.
func CPUOf(pid int) (seconds float64) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(err)
	_, rest, _ := strings.Cut(string(stat), ") ")
	for _, field := range strings.Fields(rest)[11:13] {
		ticks, err := strconv.ParseFloat(field, 64)
		must(err)
		seconds += ticks / 100
	}
	return seconds
}

// CPUSince returns a text with the CPU time in seconds that each program has used since before.
func (f *Fleet) CPUSince(before map[string]float64) string {
	now := f.CPU()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if name != "" {
			out = append(out, fmt.Sprintf("%s %.1f", name, now[name]-before[name]))
		}
	}
	return strings.Join(out, ", ")
}

// Own returns the CPU time in seconds that this process has used since before.
func (f *Fleet) Own(before map[string]float64) float64 { return f.CPU()[""] - before[""] }
