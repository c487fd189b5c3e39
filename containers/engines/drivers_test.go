package engines_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/cmd/carma/settings"
	"carma/configs"
	"carma/containers"
	"carma/containers/engines"
)

// TestDriversAreEngines: each package below containers with a driver is an engine, and runs
// the suite of all drivers.
func TestDriversAreEngines(t *testing.T) {
	drivers := map[string]bool{}
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	suites := map[string]bool{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(file))
		if name == "containerstest" { // the fake
			continue
		}
		if strings.HasSuffix(file, "_test.go") {
			suites[name] = suites[name] || strings.Contains(string(b), "containerstest.Suite(")
		} else if strings.Contains(string(b), "Driver) Attached(ctx context.Context") || strings.Contains(string(b), "Driver) Attached(context.Context") {
			drivers[name] = true
		}
	}
	for name := range drivers {
		if !slices.Contains(settings.Drivers, name) {
			t.Errorf("containers/%s has a driver, and no engine has that name; add it to engines.All and settings.Drivers", name)
		}
		if !suites[name] {
			t.Errorf("containers/%s does not run containerstest.Suite", name)
		}
	}
	for _, name := range settings.Drivers {
		if !drivers[name] {
			t.Errorf("this test finds no driver for the engine %s", name)
		}
	}
}

// TestAttachNamesNoOtherEngine: each engine has its own rules for attaching GPUs. An engine
// without rules would get Docker's.
func TestAttachNamesNoOtherEngine(t *testing.T) {
	for _, name := range engines.Names() {
		for _, choice := range []containers.Choice{
			{Driver: name, Engine: containers.Engine{CDIDirs: []string{"/etc/cdi"}}},
			{Driver: name, Hook: true, CDI: os.ErrNotExist},
			{Driver: name, CDI: os.ErrNotExist},
		} {
			_, why, err := containers.ChooseAttach(choice)
			if err != nil {
				why = err.Error()
			}
			if name != "docker" && strings.Contains(why, "Docker") {
				t.Errorf("%s attaches GPUs by Docker's rules: %s; add rules to containers.ChooseAttach", name, why)
			}
		}
	}
}

// TestEnginesAreDescribed: the usage of --driver, the example of a settings file and
// docs/containers.md name each engine.
func TestEnginesAreDescribed(t *testing.T) {
	docs, err := os.ReadFile("../../docs/containers.md")
	if err != nil {
		t.Fatal(err)
	}
	usage := ""
	for _, s := range settings.Settings(settings.Default(), nil) {
		if s.Key == "driver" {
			usage = s.Usage
		}
	}
	before, _, _ := strings.Cut(configs.Example, "\n#driver:")
	comment := before[strings.LastIndex(before, "\n\n")+1:]
	for _, name := range settings.Drivers {
		if !strings.Contains(comment, name) {
			t.Errorf("configs/carma.example.yaml does not name %s: %s", name, comment)
		}
		if !strings.Contains(usage, name) {
			t.Errorf("the usage of driver does not name %s: %s", name, usage)
		}
		if !strings.Contains(string(docs), "| `"+name+"`") {
			t.Errorf("docs/containers.md has no row for %s", name)
		}
	}
}
