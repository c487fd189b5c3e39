package monitor

import (
	"errors"
	"testing"

	"carma/internal/units"
	"carma/runner/gpu"
)

// TestNeverTouched checks that an attempt counts as never having used its GPUs only if each of
// several readings shows no memory of it on any of its GPUs.
func TestNeverTouched(t *testing.T) {
	mine := gpu.Process{Task: 7, Attempt: 1, Used: units.MiB}
	for name, c := range map[string]struct {
		at   int         // at this reading
		show *gpu.Sample // sample of GPU b
		err  error       // error of the reading
		want bool
	}{
		"nothing of it":               {at: -1, want: true},
		"too few readings":            {at: MinReadings, want: false},
		"a process of it":             {at: 2, show: &gpu.Sample{UUID: "GPU-b", Processes: []gpu.Process{mine}}},
		"a process that nobody knows": {at: 2, show: &gpu.Sample{UUID: "GPU-b", Processes: []gpu.Process{{PID: 5, Used: units.MiB}}}},
		"another task's":              {at: 2, show: &gpu.Sample{UUID: "GPU-b", Processes: []gpu.Process{{Task: 8, Attempt: 1}}}, want: true},
		"a fault":                     {at: 2, show: &gpu.Sample{UUID: "GPU-b", Fault: "sick"}},
		"no reading":                  {at: 2, err: errors.New("no answer")},
	} {
		cards := newCards(2)
		m := newTestMonitor(cards)
		key := gpu.AttemptKey{Task: 7, Attempt: 1}
		m.Watch(key, map[string]units.Bytes{"GPU-a": 40 * units.GiB, "GPU-b": 40 * units.GiB}, true)
		n := MinReadings
		if name == "too few readings" {
			n--
		}
		for i := range n {
			cards.set(gpu.Sample{UUID: "GPU-b"}, nil)
			if i == c.at && c.show != nil {
				cards.set(*c.show, nil)
			} else if i == c.at {
				cards.set(gpu.Sample{UUID: "GPU-b"}, c.err)
			}
			m.sample(t.Context())
		}
		if got := m.NeverTouched(key); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if m.Forget(7, 1); m.NeverTouched(key) || m.NeverTouched(gpu.AttemptKey{Task: 9, Attempt: 1}) {
			t.Errorf("%s: it is told of one that nobody looked at", name)
		}
	}
}
