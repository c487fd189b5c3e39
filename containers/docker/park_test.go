//go:build docker

package docker

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carma/containers"
)

// parkedTool returns a parked container of the tool, and its pid.
func parkedTool(t *testing.T, d *Driver, entrypoint ...string) (id string, pid int) {
	t.Helper()
	id, err := d.Create(t.Context(), containers.Spec{
		Name: "carma-suite-" + strings.ToLower(rand.Text()), Image: toolRef, Park: true, Entrypoint: entrypoint,
		Labels: map[string]string{"carma.suite.test": "hold"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Remove(context.Background(), id); err != nil {
			t.Error(err)
		}
		left, err := os.ReadDir(d.opts.ParkDir)
		if err != nil || len(left) != 0 {
			t.Errorf("left in the folder of parked containers: %v, %v", left, err)
		}
	})
	if pid, err = d.Park(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return id, pid
}

// TestParkedNotFound: a missing program shows when the container is unparked, not
// before.
func TestParkedNotFound(t *testing.T) {
	d := newDriver(t, "")
	defer func() { _ = d.Close() }()
	id, _ := parkedTool(t, d, "/no/such/program")
	if err := d.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	exit, err := d.Wait(t.Context(), id)
	var text string
	_ = d.Logs(t.Context(), id, time.Time{}, false, func(_ time.Time, _ containers.Stream, line []byte, _ bool) { text += string(line) })
	if err != nil || exit.Code != 127 || !strings.Contains(text, "/no/such/program") {
		t.Errorf("%+v, %v, it says %q; want code 127", exit, err, text)
	}
}

// TestParkedStopped: a parked container ends at its stop signal, long before it
// would be killed.
func TestParkedStopped(t *testing.T) {
	d := newDriver(t, "")
	defer func() { _ = d.Close() }()
	id, _ := parkedTool(t, d)
	if err := d.Signal(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if exit, err := d.Wait(t.Context(), id); err != nil || exit.Code != 143 {
		t.Errorf("%+v, %v; want code 143", exit, err)
	}
}

// TestParkedByAnother: another process finds a container parked and unparks it.
func TestParkedByAnother(t *testing.T) {
	d, other := newDriver(t, ""), newDriver(t, "")
	defer func() { _, _ = d.Close(), other.Close() }()
	id, pid := parkedTool(t, d)
	if again, err := other.Park(t.Context(), id); err != nil || again != pid {
		t.Errorf("process %d, %v, want %d", again, err, pid)
	}
	if err := other.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if exit, err := d.Wait(t.Context(), id); err != nil || exit.Code != 0 {
		t.Errorf("%+v, %v", exit, err)
	}
}

// TestParkLabel: a label set by an image does not name a folder of the host.
func TestParkLabel(t *testing.T) {
	d := newDriver(t, "")
	defer func() { _ = d.Close() }()
	outside := t.TempDir()
	id, err := d.Create(t.Context(), containers.Spec{
		Name: "carma-suite-" + strings.ToLower(rand.Text()), Image: toolRef, Labels: map[string]string{labelPark: outside},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Park(t.Context(), id); err == nil {
		t.Error("parked by a label that is not the driver's")
	}
	if err := d.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if files, err := filepath.Glob(filepath.Join(outside, "*")); err != nil || len(files) != 0 {
		t.Errorf("%v, %v", files, err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}
