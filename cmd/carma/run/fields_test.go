package run

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"carma/cmd/carma/suite/compose"
	"carma/runner/api"
)

// sample returns a valid text for a field.
func sample(t *testing.T, f api.Field) string {
	switch {
	case f.Words != nil:
		return f.Words[len(f.Words)-1]
	case f.Yes():
		return "true"
	case f.Name == "workdir":
		return "/work"
	}
	if text := map[string]string{"ulimit": "nofile=1024:2048", "tmpfs": "/scratch:size=1G", "publish": "8888:8888", "device": "/dev/infiniband/uverbs0", "stop-signal": "INT", "bits": "4", "notify": "failed,finished", "offload": "optimizer", "oom-text": "memory pool is empty"}[f.Name]; text != "" {
		return text
	}
	for _, text := range []string{"12G", "90s", "3x4", "7"} { // the first valid one
		if f.Set(&api.Submit{}, text) == nil {
			return text
		}
	}
	t.Fatalf("%s takes none of the samples; add one here", f.Name)
	return ""
}

// TestFieldsEverywhere checks that each field of a task that one text can describe is a flag of
// carma run, a key of task files and a key of x-carma, with the same meaning, and that the
// documentation lists it.
func TestFieldsEverywhere(t *testing.T) {
	pages := ""
	for _, name := range []string{"tasks.md", "suites.md"} {
		b, err := os.ReadFile("../../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		pages += string(b)
	}
	apart := []string{"params", "family", "input", "layers", "probe", "parallel"} // fields that contradict some of the others
	bare := []string{"conda", "venv", "host"}                                     // TestBareEverywhere has these
	for _, second := range []bool{false, true} {
		given := map[string]string{}
		for _, f := range api.Fields() {
			if !f.Old() && !strings.Contains(pages, "`"+f.Name+"`") {
				t.Errorf("neither docs/tasks.md nor docs/suites.md names `%s`", f.Name)
			}
			if slices.Contains(bare, f.Name) {
				continue
			}
			if slices.Contains(apart, f.Name) == second || f.Name == "batch-size" {
				given[f.Name] = sample(t, f)
			}
		}
		if second {
			given["array"] = "1-2"
		}
		want := jsonOf(t, byFlags(t, given))
		if got := jsonOf(t, byFile(t, given)); got != want {
			t.Errorf("task file %s\nflags     %s", got, want)
		}
		for _, f := range api.Fields() {
			if _, is := given[f.Name]; is && !strings.Contains(want, strings.ReplaceAll(f.Name, "-", "_")) {
				t.Errorf("--%s has done nothing: %s", f.Name, want)
			}
		}
		delete(given, "name") // a service has one
		want = jsonOf(t, byFlags(t, given))
		if got := jsonOf(t, byCompose(t, given)); got != want {
			t.Errorf("Compose file %s\nflags        %s", got, want)
		}
	}
}

func jsonOf(t *testing.T, tasks []api.Submit) string {
	b, err := json.Marshal(tasks)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func submissionBy(t *testing.T, args ...string) []api.Submit {
	t.Helper()
	o, cmd := options{}, &cobra.Command{}
	o.flags(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	s, err := o.submission(strings.NewReader(""), cmd.Flags().Args())
	if err != nil {
		t.Fatal(err)
	}
	return s.Tasks
}

func byFlags(t *testing.T, given map[string]string) []api.Submit {
	var args []string
	for name, text := range given {
		args = append(args, "--"+name+"="+text)
	}
	return submissionBy(t, append(args, "my/image")...)
}

func keysAndValues(given map[string]string, indent string) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(given)) {
		text += indent + name + ": " + given[name] + "\n"
	}
	return text
}

func byFile(t *testing.T, given map[string]string) []api.Submit {
	path := filepath.Join(t.TempDir(), "tasks.yaml")
	if err := os.WriteFile(path, []byte("image: my/image\n"+keysAndValues(given, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return submissionBy(t, "-f", path)
}

func byCompose(t *testing.T, given map[string]string) []api.Submit {
	text := "services:\n  a:\n    image: my/image\n    x-carma:\n" + keysAndValues(given, "      ")
	s, err := compose.Load(t.Context(), "compose.yaml", []byte(text), compose.Options{Name: "s", Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	request, err := s.Submission()
	if err != nil {
		t.Fatal(err)
	}
	for i := range request.Tasks {
		request.Tasks[i].Part = ""
	}
	return request.Tasks
}
