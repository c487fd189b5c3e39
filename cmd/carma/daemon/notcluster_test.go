package daemon

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/settings"
)

// loaded returns the configuration from a file with this text and from flags.
func loaded(t *testing.T, text string, words ...string) (settings.Config, settings.Origins) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CARMA_CONFIG", file)
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	settings.AddFlags(flags, notClusterKeys()...)
	if err := flags.Parse(words); err != nil {
		t.Fatal(err)
	}
	config, from, err := settings.Load(flags)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return config, from
}

func notClusterKeys() (all []string) {
	for _, no := range notOnCluster {
		all = append(all, no.keys...)
	}
	return all
}

// notDefault returns a value of a setting that differs from its default.
func notDefault(key string) string {
	return cmp.Or(map[string]string{
		"suspend": "move", "suspend-least": "5m", "mps": "user", "mps-threads": "50", "memory-limit": "driver", "mps-ipc": "host", "processors": "near",
	}[key], "true")
}

// TestNotOnCluster: a setting that a cluster does not support is refused in one line that
// names an alternative. Its default is no error, and neither is any of these settings on
// one server.
func TestNotOnCluster(t *testing.T) {
	says := map[string]string{
		"make-way": "no task is suspended: a claim keeps its GPU memory for as long as its pod is there; leave it out; carma requeue --hold TASK makes room by hand",
		"mps":      "there is no MPS", "mps-threads": "there is no MPS", "mps-ipc": "there is no MPS", "memory-limit": "nothing holds a program to its GPU memory", "memory-burst": "nothing holds", "processors": "the kubelet chooses",
	}
	for _, key := range notClusterKeys() {
		want := says[key]
		if want == "" {
			want = "no task is suspended"
		}
		line := key + ": " + notDefault(key)
		config, from := loaded(t, "driver: kubernetes\n"+line+"\n")
		err := checkCluster(config, from)
		if err == nil || cli.CodeOf(err) != cli.ExitUsage || !strings.Contains(err.Error(), "config.yaml:2: "+line+": on a cluster "+want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
		config, from = loaded(t, "driver: docker\n"+line+"\n")
		if err := checkCluster(config, from); err != nil {
			t.Errorf("%s on one server: %v", line, err)
		}
	}
	// A new setting must be in the table, or only adjust a setting that exists.
	how := []string{"mps-control", "mps-dir", "mps-memory-limit", "memory-caps"}
	all, origins := loaded(t, "")
	for _, s := range settings.Settings(all, origins) {
		for _, of := range []string{"suspend", "mps", "memory-"} {
			if strings.HasPrefix(s.Key, of) && !slices.Contains(how, s.Key) && !slices.Contains(notClusterKeys(), s.Key) {
				t.Errorf("what becomes of %s on a cluster?", s.Key)
			}
		}
	}
	config, from := loaded(t, "driver: kubernetes\n", "--make-way")
	if err := checkCluster(config, from); err == nil || !strings.HasPrefix(err.Error(), "--make-way: true: on a cluster") {
		t.Errorf("the flag: %v", err)
	}
	for _, text := range []string{"", "suspend: auto\n", "suspend: off\nmps: off\nmemory-limit: off\nmake-way: false\nmps-threads: 0\nprocessors: any\n", "mps: auto\nmemory-limit: auto\n"} {
		config, from := loaded(t, "driver: kubernetes\n"+text)
		if err := checkCluster(config, from); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
