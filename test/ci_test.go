package test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestReplayWorkflows: the shipped workflow files are YAML and run the target in
// the Makefile.
func TestReplayWorkflows(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^replay-check: .*\n\t.* replay --check test/replay-bounds\.yaml$`).Match(makefile) {
		t.Error("the Makefile has no replay-check that runs the bounds")
	}
	var github struct {
		On   map[string]any `yaml:"on"`
		Jobs map[string]struct {
			RunsOn string `yaml:"runs-on"`
			Steps  []struct{ Uses, Run, Shell string }
		}
	}
	read(t, "../configs/ci/github-replay.yaml", &github)
	var runs []string
	for _, s := range github.Jobs["replay"].Steps {
		runs = append(runs, s.Run)
	}
	if len(github.On) == 0 || github.Jobs["replay"].RunsOn == "" || !strings.Contains(strings.Join(runs, "\n"), "make replay-check") {
		t.Errorf("%+v", github)
	}
	var gitlab struct {
		Replay struct {
			Image, Stage string
			Script       []string
			Artifacts    struct{ Paths []string }
		}
	}
	read(t, "../configs/ci/gitlab-replay.yaml", &gitlab)
	if r := gitlab.Replay; r.Image == "" || !strings.Contains(strings.Join(r.Script, "\n"), "make replay-check") || len(r.Artifacts.Paths) != 1 {
		t.Errorf("%+v", gitlab)
	}
}

func read(t *testing.T, path string, to any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, to); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
