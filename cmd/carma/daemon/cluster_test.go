package daemon

import (
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/settings"
	"carma/containers"
	"carma/runner"
	"carma/runner/clock"
)

// TestForCluster checks that settings that a cluster does not support are off for any
// configuration, and that other settings do not change.
func TestForCluster(t *testing.T) {
	config := settings.Default()
	if got := forCluster(config); got.MPS != config.MPS || got.HostTasks != config.HostTasks || liveOf(got).Bounds.Elsewhere {
		t.Errorf("with Docker: %+v", got)
	}
	config.Driver = "kubernetes"
	got := forCluster(config)
	if got.MPS != "off" || got.MemoryLimit != "off" || got.Suspend != "off" || got.HostTasks != "none" || got.Mapper.Shrink != 0 || got.Mapper.LearnMemory != 0 || !liveOf(got).Bounds.Elsewhere {
		t.Errorf("in a cluster: %+v", got)
	}
}

// TestClusterFlags: wrong combinations are refused in one line, before anything is sent.
func TestClusterFlags(t *testing.T) {
	for say, spoil := range map[string]func(*settings.Config){
		"--gpus cluster needs a cluster; the driver is docker": func(c *settings.Config) { c.Driver, c.GPUs = "docker", "cluster" },
		"the GPUs are the cluster's":                           func(c *settings.Config) { c.GPUs = "nvml" },
		"gives pods their GPUs by claims":                      func(c *settings.Config) { c.Attach = "cdi" },
		"a cluster's time is the clock's":                      func(c *settings.Config) { c.Speed = 60 },
	} {
		config := settings.Default()
		config.Driver = "kubernetes"
		spoil(&config)
		d := struct {
			containers.Driver
			clusterDriver
		}{}
		open := func() error {
			if config.Driver != "kubernetes" {
				_, err := openGPUs(t.Context(), config, nil, clock.New(1), &runner.Options{}, zerolog.Nop())
				return err
			}
			_, err := openGPUs(t.Context(), config, d, clock.New(1), &runner.Options{}, zerolog.Nop())
			return err
		}
		err := open()
		if err == nil || cli.CodeOf(err) != cli.ExitUsage || !strings.Contains(err.Error(), say) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s", err, say)
		}
	}
}
