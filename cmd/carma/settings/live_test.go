package settings

import (
	"slices"
	"testing"
	"time"
)

// TestChanges checks that Changes separates keys that can change while the daemon runs from
// keys that need a restart.
func TestChanges(t *testing.T) {
	a, b := Default(), Default()
	b.DataDir, b.StopGrace, b.Mapper.MaxTasks, b.AllowedMounts = "/elsewhere", time.Hour, 3, []string{"/data"}
	live, restart := Changes(a, b)
	slices.Sort(live)
	if want := []string{"allowed-mounts", "max-tasks", "stop-grace"}; !slices.Equal(live, want) {
		t.Errorf("live: %v, want %v", live, want)
	}
	if want := []string{"data-dir"}; !slices.Equal(restart, want) {
		t.Errorf("restart: %v, want %v", restart, want)
	}
	for name, want := range map[string]bool{"policy": true, "backoff": true, "pull": true, "socket": false, "driver": false, "no-such": false} {
		if Live(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// TestTaken checks that Taken takes all keys that can change, and that Changes then finds no
// more of them.
func TestTaken(t *testing.T) {
	a, b := Default(), Default()
	b.DataDir, b.KeepTasks, b.Mapper.MaxTasks, b.MaxPids, b.Visibility, b.Probe = "/elsewhere", 7, 3, 99, "open", "never"
	a = Taken(a, b)
	live, restart := Changes(a, b)
	if len(live) > 0 || !slices.Equal(restart, []string{"data-dir"}) || a.KeepTasks != 7 || a.Mapper.MaxTasks != 3 {
		t.Errorf("live %v, restart %v", live, restart)
	}
}
