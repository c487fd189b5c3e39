package test

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// allowed lists, for each package of ours, which of our packages it may
// import. An arrow that nothing checks gets reversed.
var allowed = map[string][]string{
	"carma/mapper/units":                  {},
	"carma/mapper":                        {"carma/mapper/interference"},
	"carma/mapper/interference":           {},
	"carma/mapper/words":                  {"carma/mapper"},
	"carma/mapper/sim":                    {"carma/mapper", "carma/mapper/interference", "carma/mapper/words"},
	"carma/mapper/sim/study":              {"carma/configs", "carma/estimator/networks/zoo", "carma/configs/servers", "carma/configs/traces", "carma/configs/workloads", "carma/estimator", "carma/estimator/booking", "carma/estimator/environment", "carma/estimator/evaluate", "carma/estimator/methods", "carma/estimator/rivals", "carma/mapper", "carma/mapper/sim"},
	"carma/mapper/sim/fit":                {"carma/mapper/sim", "carma/mapper/sim/pairs"},
	"carma/mapper/sim/pairs":              {"carma/mapper/sim"},
	"carma/containers":                    {},
	"carma/containers/cdi":                {},
	"carma/containers/docker":             {"carma/containers", "carma/containers/cdi"},
	"carma/containers/containerd":         {"carma/containers", "carma/containers/cdi", "carma/test/failpoint"},
	"carma/containers/engines":            {"carma/containers", "carma/containers/containerd", "carma/containers/docker"},
	"carma/containers/containerstest":     {"carma/containers"},
	"carma/estimator":                     {"carma/configs/models", "carma/mapper", "carma/mapper/interference"},
	"carma/estimator/probe":               {"carma/configs/models", "carma/containers"},
	"carma/configs/models":                {},
	"carma/estimator/networks":            {"carma/configs/models"},
	"carma/estimator/networks/summary":    {"carma/configs/models"},
	"carma/estimator/networks/zoo":        {"carma/configs/models", "carma/estimator/networks/timm"},
	"carma/estimator/networks/timm":       {"carma/configs/models"},
	"carma/estimator/networks/onnxfile":   {"carma/configs/models"},
	"carma/estimator/allocator":           {},
	"carma/estimator/step":                {"carma/configs/models", "carma/estimator/allocator"},
	"carma/estimator/environment":         {"carma/estimator/step"},
	"carma/estimator/residual":            {"carma/configs/models", "carma/estimator/onnx", "carma/estimator/step"},
	"carma/estimator/figures":             {"carma/configs/models", "carma/estimator/onnx", "carma/estimator/step"},
	"carma/estimator/methods":             {"carma/configs/models", "carma/estimator/figures", "carma/estimator/onnx", "carma/estimator/residual", "carma/estimator/step"},
	"carma/estimator/rivals/gpumemnet":    {"carma/configs/models", "carma/estimator/onnx"},
	"carma/estimator/rivals":              {"carma/configs/models", "carma/estimator/methods", "carma/estimator/onnx", "carma/estimator/step"},
	"carma/estimator/evaluate":            {"carma/configs/models", "carma/estimator", "carma/estimator/environment", "carma/estimator/methods"},
	"carma/estimator/booking":             {"carma/configs/models", "carma/estimator/networks/zoo", "carma/configs/workloads", "carma/estimator", "carma/estimator/environment", "carma/estimator/figures", "carma/estimator/methods", "carma/estimator/onnx", "carma/estimator/residual", "carma/mapper", "carma/mapper/interference"},
	"carma/estimator/onnx":                {},
	"carma/configs":                       {"carma/mapper"},
	"carma/configs/workloads":             {},
	"carma/configs/servers":               {},
	"carma/configs/taskfile":              {"carma/runner/api"},
	"carma/configs/suites":                {},
	"carma/configs/traces":                {"carma/mapper", "carma/configs/workloads"},
	"carma/configs/traces/joblog":         {},
	"carma/configs/traces/philly":         {"carma/configs/traces/joblog"},
	"carma/configs/traces/helios":         {"carma/configs/traces/joblog"},
	"carma/configs/traces/arrivals":       {"carma/configs/traces/joblog"},
	"carma/configs/traces/mixes":          {"carma/configs/workloads"},
	"carma/configs/traces/original":       {"carma/configs/traces", "carma/configs/traces/joblog", "carma/configs/workloads", "carma/mapper"},
	"carma/configs/traces/load":           {"carma/configs/traces", "carma/configs/traces/arrivals", "carma/configs/traces/helios", "carma/configs/traces/joblog", "carma/configs/traces/original", "carma/configs/traces/philly"},
	"carma/configs/traces/synth":          {},
	"carma/runner":                        {"carma/mapper", "carma/mapper/words", "carma/configs/models", "carma/containers", "carma/containers/cdi", "carma/estimator", "carma/estimator/probe", "carma/test/failpoint", "carma/runner/api", "carma/runner/gpu", "carma/runner/gpu/cgroup", "carma/runner/journal", "carma/runner/limits", "carma/runner/mounts", "carma/runner/mps", "carma/runner/tasklog"},
	"carma/runner/mps":                    {},
	"carma/runner/limits":                 {},
	"carma/runner/mounts":                 {},
	"carma/runner/api":                    {},
	"carma/test/failpoint":                {},
	"carma/runner/journal":                {"carma/test/failpoint"},
	"carma/runner/tasklog":                {"carma/test/failpoint"},
	"carma/runner/gpu":                    {"carma/mapper"},
	"carma/runner/gpu/cgroup":             {},
	"carma/runner/gpu/dcgm":               {},
	"carma/runner/gpu/nvml":               {"carma/mapper", "carma/runner/gpu"},
	"carma/cmd/carma/suite":               {"carma/configs/taskfile", "carma/runner/api"},
	"carma/cmd/carma/report":              {"carma/mapper", "carma/mapper/sim"},
	"carma/configs/nearest":               {},
	"carma/containers/containerd/logfile": {"carma/containers"},
	"carma/runner/gpu/simgpu/client":      {"carma/mapper", "carma/runner/gpu/simgpu/wire"},
	"carma/runner/gpu/simgpu/wire":        {"carma/mapper"},
	"carma/runner/gpu/simgpu":             {"carma/mapper", "carma/mapper/sim", "carma/configs/servers", "carma/runner/gpu"},
}

// free are commands, tools and tests, which may import what they like.
var free = []string{
	"carma/cmd", "carma/test", "carma/mapper/sim/fit", "carma/estimator/fit", "carma/estimator/report",
	"carma/estimator/networks/timm/pack", "carma/configs/traces/synth/write",
	"carma/containers/containerstest/engine", "carma/containers/containerstest/tool",
	"carma/runner/limits/standin", "carma/runner/mps/standin",
}

// pure packages may use the standard library only, and what the table names.
var pure = []string{"carma/mapper", "carma/mapper/units", "carma/mapper/interference", "carma/mapper/words", "carma/mapper/sim", "carma/mapper/sim/pairs"}

func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "../...").Output()
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(out)))
	seen := 0
	for {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		may, known := lookUp(p.ImportPath)
		if !known {
			if !slices.ContainsFunc(free, func(f string) bool { return p.ImportPath == f || strings.HasPrefix(p.ImportPath, f+"/") }) {
				t.Errorf("%s is not in the list of what may import what; add it in test/imports_test.go", p.ImportPath)
			}
			continue
		}
		seen++
		for _, i := range may {
			if !slices.Contains(p.Imports, i) {
				t.Errorf("%s does not import %s; take that out of test/imports_test.go", p.ImportPath, i)
			}
		}
		for _, i := range p.Imports {
			ours := strings.HasPrefix(i, "carma/")
			if ours && !mayImport(p.ImportPath, may, i) {
				t.Errorf("%s imports %s; if that is right, say so in test/imports_test.go", p.ImportPath, i)
			}
			if !ours && slices.Contains(pure, p.ImportPath) && strings.Contains(i, ".") {
				t.Errorf("%s imports %s; it may use the standard library only", p.ImportPath, i)
			}
			if i == "github.com/spf13/viper" && p.ImportPath != "carma/configs" {
				t.Errorf("%s imports viper; only configs does", p.ImportPath)
			}
		}
	}
	if seen < len(allowed)-1 {
		t.Errorf("only %d of %d listed packages were found", seen, len(allowed))
	}
}

// offPath is what is for comparison, evaluation, import and replay: nothing that a
// task's run needs (docs/design.md, Packages).
var offPath = []string{
	"carma/cmd/carma/report", "carma/configs/traces", "carma/estimator/evaluate", "carma/estimator/rivals",
	"carma/mapper/sim/pairs", "carma/mapper/sim/study",
}

// readers read files of others. A command does so as its user, the daemon,
// which may be root, never.
var readers = []string{"carma/estimator/networks/onnxfile", "carma/estimator/networks/summary", "carma/configs/taskfile"}

// TestDaemonWithoutLab: nothing of the lab is below the daemon, what its command
// wires, or run; no reader below the daemon.
func TestDaemonWithoutLab(t *testing.T) {
	program := depsOf(t, "carma/cmd/carma")
	for name, c := range map[string]struct{ without, needs []string }{
		"daemon": {slices.Concat(offPath, readers), []string{"carma/configs", "carma/estimator/booking"}},
		"run":    {offPath, []string{"carma/runner/api"}},
	} {
		roots := importsOf(t, "../cmd/carma/"+name+"*.go", "../cmd/carma/"+name+"/*.go")
		for _, needed := range c.needs {
			if !slices.Contains(roots, needed) {
				t.Errorf("the files of carma %s were not found: none imports %s", name, needed)
			}
		}
		if name == "daemon" {
			roots = append(roots, "carma/runner")
		}
		all := depsOf(t, roots...)
		for _, of := range c.without {
			below := func(path string) bool { return path == of || strings.HasPrefix(path, of+"/") }
			if i := slices.IndexFunc(all, below); i >= 0 {
				t.Errorf("%s is below carma %s; it is for other commands", all[i], name)
			}
			if !slices.ContainsFunc(program, below) {
				t.Errorf("no command has %s; take it out of the list", of)
			}
		}
	}
}

// importsOf are our packages that the files of some patterns import.
func importsOf(t *testing.T, patterns ...string) []string {
	t.Helper()
	var list []string
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range f.Imports {
				if path, err := strconv.Unquote(i.Path.Value); err == nil && strings.HasPrefix(path, "carma/") {
					list = append(list, path)
				}
			}
		}
	}
	return list
}

// depsOf are some packages and all below them.
func depsOf(t *testing.T, packages ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-deps"}, packages...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// lookUp returns what a package may import, and whether it is known: a driver of
// another container engine is, by its place.
func lookUp(path string) ([]string, bool) {
	may, ok := allowed[path]
	if !ok && isDriver(path) {
		return []string{"carma/containers"}, true
	}
	return may, ok
}

// isDriver reports whether a package below containers is not one of the listed.
func isDriver(path string) bool {
	_, listed := allowed[path]
	below, is := strings.CutPrefix(path, "carma/containers/")
	return is && !listed && !strings.Contains(below, "/")
}

// common packages may be imported by all.
var common = []string{"carma/configs/nearest", "carma/mapper/units"}

// mayImport also allows a package its own sub-packages.
func mayImport(from string, may []string, path string) bool {
	return slices.Contains(may, path) || (from != "carma/mapper" && from != "carma/runner" && strings.HasPrefix(path, from+"/")) ||
		slices.Contains(common, path) || from == "carma/containers/engines" && isDriver(path)
}
