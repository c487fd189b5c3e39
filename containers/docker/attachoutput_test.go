//go:build docker

package docker

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"carma/containers"
)

// TestAttachedUnread: a container whose attached output nobody has read continues when
// the session is closed.
func TestAttachedUnread(t *testing.T) {
	folder := t.TempDir()
	id := launch(t, []containers.Mount{{Source: folder, Target: "/gate"}}, "gate:/gate/open", fmt.Sprint("count:", 600_000))
	d := newDriver(t, "")
	defer func() { _ = d.Close() }()
	s, err := d.AttachOutput(t.Context(), id, containers.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "open"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	one := make([]byte, 1)
	if _, err := s.(*session).conn.Reader.Read(one); err != nil { // it has begun
		t.Fatal(err)
	}
	_ = s.Close()
	if exit, err := d.Wait(t.Context(), id); err != nil || exit.Code != 0 {
		t.Errorf("exit %+v, %v", exit, err)
	}
}
