package usermounts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"carma/containers/containerstest"
	"carma/runner/api"
	"carma/runner/request"
)

var ann = request.Caller{UID: 20001, GID: 20001, Name: "ann"}

// TestHangingFiles checks that a mount is refused with the advice to try again if the largest
// number of checks hangs.
func TestHangingFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(Config{Driver: containerstest.NewFake(), Allowed: func() []string { return []string{"/tmp"} }})
		for range maxOpening {
			o.opening <- struct{}{}
		}
		err := o.Check(t.Context(), ann)([]api.Mount{{Source: "/tmp", Target: "/m"}})
		refused, ok := errors.AsType[*request.Error](err)
		if !ok || refused.Status != 503 || !strings.Contains(refused.Text, "-v /tmp: its file system does not answer; try again when it does") {
			t.Errorf("%v", err)
		}
	})
}

// TestCheck checks that root may mount what exists, and others only what the settings allow.
func TestCheck(t *testing.T) {
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	o := New(Config{Driver: containerstest.NewFake(), Allowed: func() []string { return []string{home} }})
	for _, c := range []struct {
		who    request.Caller
		source string
		status int // 0: accepted
	}{
		{request.Caller{Name: "root"}, home + "/data", 0},
		{request.Caller{Name: "root"}, home + "/none", 422},
		{ann, "/etc", 403},
	} {
		err := o.Check(t.Context(), c.who)([]api.Mount{{Source: c.source, Target: "/m"}})
		refused, _ := errors.AsType[*request.Error](err)
		if c.status == 0 && err != nil || c.status != 0 && (refused == nil || refused.Status != c.status) {
			t.Errorf("%s, %s: %v, want status %d", c.who.Name, c.source, err, c.status)
		}
	}
}

// TestCheckPaths checks that relative paths and the container's root are refused.
func TestCheckPaths(t *testing.T) {
	for m, ok := range map[api.Mount]bool{
		{Source: "/a", Target: "/b"}:    true,
		{Source: "a", Target: "/b"}:     false,
		{Source: "/a", Target: "b"}:     false,
		{Source: "/a", Target: "/b/.."}: false,
	} {
		if err := CheckPaths([]api.Mount{m}); (err == nil) != ok {
			t.Errorf("%+v: %v", m, err)
		}
	}
}
