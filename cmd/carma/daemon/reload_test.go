package daemon

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/cmd/carma/settings"
	"carma/mapper/model"
	"carma/mapper/policy"
	"carma/runner"
	"carma/runner/notify"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"
)

// changed is a daemon that records changes of its settings.
type changed struct {
	mapper []model.Options
	live   []runner.Live
}

func (c *changed) SetMessageRules(notify.Rules) {}

func (c *changed) Reconfigure(_ context.Context, m model.Options, live runner.Live) error {
	c.mapper, c.live = append(c.mapper, m), append(c.live, live)
	return nil
}

// reload lets a daemon that began with one file read another. It returns the changes, the
// log, and the error.
func reload(t *testing.T, first, second string) (changed, string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	t.Setenv("CARMA_CONFIG", file)
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	write(first)
	running, err := load(flags)
	if err != nil {
		t.Fatalf("%s: %v", first, err)
	}
	running = forCluster(running)
	write(second)
	var log bytes.Buffer
	var c changed
	l := reloading{load: func() (settings.Config, error) { return load(flags) }}
	taken, err := l.again(t.Context(), &c, running, zerolog.New(&log))
	if inCluster(taken) != inCluster(running) {
		t.Error("the driver is another one while the daemon runs")
	}
	return c, log.String(), err
}

// TestReloadOnCluster checks that a setting that a cluster does not support is refused at a
// reload as at the start, with its line, and that no other setting of the file is applied. Such
// a setting is accepted with its default value.
func TestReloadOnCluster(t *testing.T) {
	const before = "driver: kubernetes\n"
	for _, key := range notClusterKeys() {
		line := key + ": " + notDefault(key)
		c, log, err := reload(t, before, before+line+"\nbackoff: 7s\n")
		if err == nil || !strings.Contains(err.Error(), "config.yaml:2: "+line+": on a cluster ") || len(c.live) > 0 {
			t.Errorf("%s: %v, changed %d times", line, err, len(c.live))
		}
		if !strings.Contains(log, "is not read again: it has a fault, and nothing changes") {
			t.Errorf("%s: the log has %s", line, log)
		}
	}
	c, log, err := reload(t, before, before+"suspend-least: 2m\nbackoff: 7s\n")
	if err != nil || len(c.mapper) != 1 || c.mapper[0].Backoff.String() != "7s" || !c.live[0].Bounds.Elsewhere || strings.Contains(log, "restart") {
		t.Errorf("%v, %+v, %s", err, c, log)
	}
}

// TestReloadOtherDriver: another driver needs a restart. Until then the daemon keeps its
// driver: settings that a cluster does not support stay off on a cluster, and on one
// server nothing is turned off.
func TestReloadOtherDriver(t *testing.T) {
	c, log, err := reload(t, "driver: kubernetes\n", "driver: docker\nhost-tasks: all\nlearn-memory: 5m\nshrink: 3m\nbackoff: 7s\n")
	if err != nil || len(c.live) != 1 || !strings.Contains(log, "needs a restart: driver") {
		t.Fatalf("%v, %+v, %s", err, c, log)
	}
	if m, live := c.mapper[0], c.live[0]; m.Shrink != 0 || m.LearnMemory != 0 || live.HostTasks != "none" || !live.Bounds.Elsewhere || m.Backoff.String() != "7s" {
		t.Errorf("on a cluster: %+v, %+v", m, live)
	}
	c, log, err = reload(t, "driver: docker\nlearn-memory: 5m\nshrink: 3m\n", "driver: kubernetes\nlearn-memory: 5m\nshrink: 3m\nbackoff: 7s\n")
	if err != nil || len(c.live) != 1 || !strings.Contains(log, "needs a restart: driver") {
		t.Fatalf("%v, %+v, %s", err, c, log)
	}
	if m, live := c.mapper[0], c.live[0]; m.Shrink == 0 || m.LearnMemory == 0 || live.HostTasks == "none" || live.Bounds.Elsewhere || m.Backoff.String() != "7s" {
		t.Errorf("on one server: %+v, %+v", m, live)
	}
}

// TestDefaultsOnCluster checks that a file with the default values of all settings, for any
// policy, is accepted, like the example file.
func TestDefaultsOnCluster(t *testing.T) {
	for _, policy := range policy.Names() {
		defaults, _ := loaded(t, "policy: "+policy+"\n")
		text := "driver: kubernetes\npolicy: " + policy + "\n"
		for _, s := range settings.Settings(defaults, nil) {
			if slices.Contains(notClusterKeys(), s.Key) {
				text += s.Key + ": " + s.Value + "\n"
			}
		}
		config, from := loaded(t, text)
		if err := checkCluster(config, from); err != nil {
			t.Errorf("policy %s: %v", policy, err)
		}
	}
}
