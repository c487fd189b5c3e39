package study

import (
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/sim"
)

func TestParseSuspending(t *testing.T) {
	for text, want := range map[string]sim.Suspending{
		"":                          {},
		"5GB/s":                     {Rate: 5e9, Pause: 200 * time.Millisecond, Host: 512 * units.GiB},
		"0.5gb/s, pause=3s":         {Rate: 5e8, Pause: 3 * time.Second, Host: 512 * units.GiB},
		"12GB/s,host=64G,pause=0s ": {Rate: 12e9, Host: 64 * units.GiB},
	} {
		got, err := ParseSuspending(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if again, err := ParseSuspending(suspendingText(got)); err != nil || again != got {
			t.Errorf("%q is written as %q, which is %+v, %v", text, suspendingText(got), again, err)
		}
	}
	for text, want := range map[string]string{
		"5":               `"5" is not the speed of a copy; write for example 5GB/s`,
		"0GB/s":           `"0GB/s" is not the speed`,
		"NaNGB/s":         `is not the speed`,
		"5GB/s,hots=3G":   `unknown key "hots"; nearest: host`,
		"5GB/s,pause=2":   `pause: "2" is not a time`,
		"5GB/s,pause=-1s": `pause: "-1s" is not a time`,
		"5GB/s,host=":     `host: "" is not an amount`,
	} {
		if _, err := ParseSuspending(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"", "x", "1.5", "-0.1", "NaN"} {
		if _, err := ParseUrgent(text); err == nil {
			t.Errorf("--urgent %q was taken", text)
		}
	}
}

func TestUrge(t *testing.T) {
	tasks := make([]sim.Task, 60)
	tasks[3].Priority = model.High
	tasks[4].Priority = model.Low
	highs := func(all []sim.Task) (is []int) {
		for i, task := range all {
			if task.Priority == model.High {
				is = append(is, i)
			}
		}
		return is
	}
	a, b := highs(urge(tasks, 0.1, sim.Truth{Seed: 1})), highs(urge(tasks, 0.1, sim.Truth{Seed: 2}))
	if len(a) != 6 || len(b) != 6 || a[0] == b[0] && a[1] == b[1] && a[2] == b[2] {
		t.Errorf("urgent are %v and, of another seed, %v", a, b)
	}
	if low := urge(tasks, 0.1, sim.Truth{Seed: 1})[4].Priority; low != model.Low {
		t.Errorf("a task of low priority has %s", low)
	}
	if n := len(highs(urge(tasks, 0, sim.Truth{}))); n != 1 {
		t.Errorf("without a share %d are urgent", n)
	}
	if n := len(highs(urge(tasks, 1, sim.Truth{}))); n != 60 {
		t.Errorf("of all %d are urgent", n)
	}
}
