package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"carma/cmd/carma/settings"
	"carma/containers"
	"carma/runner"
)

// TestSetMPS checks that auto turns MPS on if MPS's programs are found and the GPUs are real.
func TestSetMPS(t *testing.T) {
	there := t.TempDir()
	for _, name := range []string{"nvidia-cuda-mps-control", "nvidia-cuda-mps-server"} {
		if err := os.WriteFile(filepath.Join(there, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		mps, path string
		attach    containers.Attach
		on, auto  bool
		why       string
	}{
		{"", there, "", true, true, ""}, // the default
		{"auto", t.TempDir(), "", false, false, "nvidia-cuda-mps-control is not installed"},
		{"auto", there, containers.AttachSimulated, false, false, ""},
		{"off", there, "", false, false, ""},
		{"user", there, "", true, false, ""},
		{"user", t.TempDir(), "", true, false, ""},
		{"shared", there, containers.AttachSimulated, true, false, ""},
	} {
		t.Setenv("PATH", row.path)
		config := settings.Default()
		if row.mps != "" {
			config.MPS = row.mps
		}
		opt := runner.Options{Attach: row.attach}
		setMPS(config, &opt, zerolog.Nop())
		if (opt.MPS != nil) != row.on || !strings.HasPrefix(opt.NoMPS, row.why) || (row.why == "") != (opt.NoMPS == "") {
			t.Errorf("%+v: %+v, %q", row, opt.MPS, opt.NoMPS)
			continue
		}
		if m := opt.MPS; m != nil && (m.Auto != row.auto || m.Groups.Shared != (row.mps == "shared") || row.path == there && m.Groups.Binary != filepath.Join(there, "nvidia-cuda-mps-control")) {
			t.Errorf("%+v: %+v %+v", row, m, m.Groups)
		}
	}
}
