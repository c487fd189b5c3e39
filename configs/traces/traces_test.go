package traces

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/configs/workloads"
	"carma/internal/units"
)

func TestShippedTraces(t *testing.T) {
	for _, c := range []struct {
		name, campaign string
		tasks, twoGPUs int
		last           time.Duration
	}{
		{"smoke-5", "v2", 5, 0, 0},
		{"philly-mix-90", "v1", 90, 6, 12514 * time.Second},
		{"philly-heavy-60", "v1", 60, 3, 8966 * time.Second},
		{"philly-t1-60", "v2", 60, 3, 13767 * time.Second},
		{"philly-t2-60", "v2", 60, 3, 18601 * time.Second},
		{"philly-day-107", "v2", 107, 0, 83891 * time.Second},
		{"philly-day-114", "v2", 114, 1, 78556 * time.Second},
	} {
		tr, err := Read(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if tr.Name != c.name || tr.Campaign != c.campaign || len(tr.Tasks) != c.tasks || tr.Source == "" || tr.Description == "" {
			t.Errorf("%s: %q campaign %s, %d tasks", c.name, tr.Name, tr.Campaign, len(tr.Tasks))
		}
		if last := tr.Tasks[len(tr.Tasks)-1].At; last != c.last {
			t.Errorf("%s: last arrival %v, want %v", c.name, last, c.last)
		}
		two := 0
		for _, task := range tr.Tasks {
			w, err := workloads.Find(task.Workload)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(w.Aliases, task.Name) && task.User == "" { // the name is the original's task
				t.Errorf("%s:%d: %s is not a %s", c.name, task.Line, task.Name, w.Name)
			}
			if task.GPUs == 2 {
				two++
			}
		}
		if two != c.twoGPUs {
			t.Errorf("%s: %d two-GPU tasks, want %d", c.name, two, c.twoGPUs)
		}
	}
	if len(Names()) != 7 {
		t.Errorf("names %q", Names())
	}
}

const head = "schema: carma/trace/v1\ntasks:\n"

func TestFullTask(t *testing.T) {
	want := Task{
		At: time.Hour + 2*time.Minute + 3*time.Second, Workload: "gpt2-large-wikitext2-bs8-2gpu", GPUs: 4,
		Name: "mine", User: "ann", Priority: "high", Mem: 12 * units.GiB, Line: 3,
	}
	yaml, err := Parse("x.yaml", strings.NewReader(head+"  - {gpus: 4, at: 1h2m3s, workload: GPT2_large_2, name: mine, user: ann, priority: High, mem: 12G}\n"))
	if err != nil || len(yaml.Tasks) != 1 || yaml.Tasks[0] != want {
		t.Errorf("%+v %v", yaml.Tasks, err)
	}
	if yaml.Name != "x" || yaml.Campaign != "v2" {
		t.Errorf("%+v", yaml)
	}
	want.Line = 2
	csv, err := Parse("x.CSV", strings.NewReader("\ufeffname,task,arrival_s,mem,user,priority,gpus,model\nmine,gpt2_large_2, 3723 ,12G,ann,high,4,whatever\n"))
	if err != nil || len(csv.Tasks) != 1 || csv.Tasks[0] != want {
		t.Errorf("%+v %v", csv.Tasks, err)
	}
}

func TestDefaultsAndOrder(t *testing.T) {
	tr, err := Parse("x.csv", strings.NewReader("arrival_s,workload,gpus,name\n10,vgg,,a\n0.5,xlnet_base_cased_2,,b\n10,vgg,,c\n0.5,vgg,2,d\n"))
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, task := range tr.Tasks {
		order = append(order, task.Name)
	}
	if got := strings.Join(order, ""); got != "bdac" {
		t.Errorf("order %s: sorted by arrival, equal ones as in the file", got)
	}
	if b, d := tr.Tasks[0], tr.Tasks[1]; b.GPUs != 2 || d.GPUs != 2 || b.At != 500*time.Millisecond {
		t.Errorf("%+v %+v", b, d)
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "smoke-5.yaml") // a file counts before the shipped trace
	if err := os.WriteFile(path, []byte(head+"  - {at: 0, workload: vgg}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if tr, err := Read(path); err != nil || len(tr.Tasks) != 1 {
		t.Errorf("%+v %v", tr, err)
	}
	if tr, err := Read("smoke-5.yaml"); err != nil || len(tr.Tasks) != 5 {
		t.Errorf("%+v %v", tr, err)
	}
	for path, want := range map[string]string{
		"smok-5":           "smok-5: no such file, and no shipped trace of that name; nearest: smoke-5, ",
		"no/philly-t1.csv": "nearest: philly-t1-60, ",
		dir:                "a folder, not a trace",
		"":                 "no such file",
	} {
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"x.yaml", "", "x.yaml:1: empty; the first line of a trace is schema: carma/trace/v1"},
		{"x.yaml", "# nothing\n", "x.yaml:1: empty"},
		{"x.yaml", "schema: carma/trace/v2\ntasks: []\n", "x.yaml:1: no schema; the first"},
		{"x.yaml", "[1]", "x.yaml:1: not a trace: keys and values are missing"},
		{"x.yaml", "schema: carma/trace/v1\ntasks: []\n", "x.yaml:1: no tasks; write at least one"},
		{"x.yaml", "schema: carma/trace/v1\n", "x.yaml:1: no tasks"},
		{"x.yaml", "schema: carma/trace/v1\ntask: []\n", `x.yaml:2: "task" is not a text`},
		{"x.yaml", "schema: carma/trace/v1\ncampain: v1\n", `x.yaml:2: unknown key "campain" of a trace; nearest: campaign`},
		{"x.yaml", "schema: carma/trace/v1\n\ncampaign: v3\ntasks: [{at: 0, workload: vgg}]\n", `x.yaml:3: unknown campaign "v3"; v1 or v2`},
		{"x.yaml", "schema: carma/trace/v1\ncampaign: v1\ntasks:\n  - {at: 0, workload: vgg}\n  - {at: 0, workload: dlrm}\n", "x.yaml:5: dlrm-criteo-bs32768 was not measured in campaign v1; v2"},
		{"x.yaml", "schema: carma/trace/v1\nname: a\nname: b\n", `x.yaml:3: key "name" a second time`},
		{"x.yaml", "schema: carma/trace/v1\ntasks: 3\n", "x.yaml:2: tasks is not a list; write one task"},
		{"x.yaml", head + "  - vgg\n", "x.yaml:3: not a task: keys and values are missing"},
		{"x.yaml", head + "  - at: 0\n    workload: vgg\n  - at: 1\n    workload: vgg\n    gpus: 0\n", "x.yaml:7: gpus is 0; nearest: 1"},
		{"x.yaml", head + "  - {at: 0, workload: vgg, gpus: 65}\n", "x.yaml:3: gpus is 65; nearest: 64"},
		{"x.yaml", head + "  - {at: 0, workload: vgg, gpus: two}\n", `x.yaml:3: gpus "two" is not a whole number; write for example 1`},
		{"x.yaml", head + "  - {at: 0, workload: resnet51}\n", `x.yaml:3: unknown workload "resnet51"; nearest: resnet, `},
		{"x.yaml", head + "  - {at: -1, workload: vgg}\n", "x.yaml:3: arrival -1 is negative; nearest: 0"},
		{"x.yaml", head + "  - {at: -1m, workload: vgg}\n", "x.yaml:3: arrival -1m is negative; nearest: 0"},
		{"x.yaml", head + "  - {at: .nan, workload: vgg}\n", `x.yaml:3: arrival ".nan" is not a time`},
		{"x.yaml", head + "  - {at: NaN, workload: vgg}\n", `x.yaml:3: arrival "NaN" is not a time`},
		{"x.yaml", head + "  - {at: 1e300, workload: vgg}\n", "x.yaml:3: arrival 1e300 is more than ten years; nearest: 87600h"},
		{"x.yaml", head + "  - {at: soon, workload: vgg}\n", `x.yaml:3: arrival "soon" is not a time; write seconds or for example 1h2m3s`},
		{"x.yaml", head + "  - {workload: vgg}\n", "x.yaml:3: task without arrival; write"},
		{"x.yaml", head + "\n\n  - {at: 0}\n", "x.yaml:5: task without workload; write"},
		{"x.yaml", head + "  - {at: 0, workload: vgg, prio: high}\n", `x.yaml:3: unknown key "prio" of a task; nearest: priority`},
		{"x.yaml", head + "  - {at: 0, workload: vgg, priority: hihg}\n", `x.yaml:3: unknown priority "hihg"; nearest: high`},
		{"x.yaml", head + "  - {at: 0, workload: vgg, mem: lots}\n", `x.yaml:3: mem: "lots" is not an amount of memory; write for example 512M or 12G`},
		{"x.yaml", head + "  - {at: 0, workload: vgg, mem: 12}\n", "x.yaml:3: mem 12 is less than 1 MiB"},
		{"x.yaml", head + "  - {at: 0, workload: vgg, user: }\n", `x.yaml:3: "user" of a task has no value`},
		{"x.yaml", head + "  - &a {at: 0, workload: vgg}\n  - *a\n", "x.yaml:4: not a task"},
		{"x.yaml", head + "  - {at: &n 0, workload: vgg}\n  - {at: *n, workload: vgg}\n", "x.yaml:4: anchors and compound keys"},
		{"x.yaml", head + "  - {at: 0, workload: vgg}\n---\na: b\n", "x.yaml:4: a second document"},
		{"x.yaml", head + "  - {at: 0, workload: vgg}\n  - {at: 0, workload: [\n", "not YAML: "},
		{"x.yaml", head + "  - {at: 0, workload: vgg}\n\t- {at: 0}\n", "x.yaml:4: not YAML: found character that cannot start any token"},
		{"x.yaml", head + "  - {at: 0, workload: vgg}\n  - at: 0: 1\n", "x.yaml:4: not YAML: mapping values are not allowed in this context"},
		{"x.csv", "", "x.csv:1: empty; the first line is arrival_s,workload"},
		{"x.csv", "arrival,workload\n", `x.csv:1: unknown column "arrival"; nearest: arrival_s`},
		{"x.csv", "arrival_s,workload,at\n", "x.csv:1: column at a second time"},
		{"x.csv", "arrival_s,user\n", "x.csv:1: columns arrival_s and workload must be there"},
		{"x.csv", "arrival_s,workload\n", "x.csv:1: no tasks"},
		{"x.csv", "arrival_s,workload\n0,vgg\n\n1\n", "x.csv:4: 1 values for 2 columns"},
		{"x.csv", "arrival_s,workload\n0,vgg\n1,vggg\n", `x.csv:3: unknown workload "vggg"; nearest: vgg, `},
		{"x.csv", "arrival_s,workload\n0,vgg\n,vgg\n", "x.csv:3: task without arrival"},
		{"x.csv", "arrival_s,workload\n0,\"vgg\n", "x.csv:2: not CSV: extraneous or missing"},
		{"x.csv", "arrival_s,name,workload\n0,\"a\nb\",vgggg\n", "x.csv:3: unknown workload"},
	} {
		_, err := Parse(c.name, strings.NewReader(c.content))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v\n\twant %s", c.content, err, c.want)
		}
	}
}

func TestTooLarge(t *testing.T) {
	if _, err := Parse("x.yaml", strings.NewReader(strings.Repeat("#", maxSize+1))); err == nil || err.Error() != "x.yaml: larger than 16 MiB" {
		t.Error(err)
	}
}

var errorForm = regexp.MustCompile(`^x\.(yaml|csv):\d+: .`)

// checkForeign: for any content the answer is a valid trace, or one line with a
// line number inside the file.
func checkForeign(t *testing.T, name, content string) {
	tr, err := Parse(name, strings.NewReader(content))
	if err != nil {
		if !errorForm.MatchString(err.Error()) || strings.ContainsAny(err.Error(), "\n") {
			t.Errorf("error %q", err)
		}
		return
	}
	var last time.Duration
	for _, task := range tr.Tasks {
		if task.At < last || task.GPUs < 1 || task.GPUs > maxGPUs || task.Mem < 0 || task.Line < 1 || task.Line > strings.Count(content, "\n")+strings.Count(content, "\r")+1 {
			t.Errorf("%+v after %v", task, last)
		}
		if _, err := workloads.Find(task.Workload); err != nil {
			t.Error(err)
		}
		last = task.At
	}
}

func FuzzYAML(f *testing.F) {
	f.Add(head + "  - {at: 0, workload: vgg}\n  - at: 1m\n    workload: resnet2\n    mem: 1.5G\n")
	f.Add("schema: carma/trace/v1\nname: &a b\nsource: *a\ncampaign: v1\ntasks: [{at: 1e9, workload: dlrm}]\n---\n")
	f.Add("- {\n")
	f.Fuzz(func(t *testing.T, content string) { checkForeign(t, "x.yaml", content) })
}

func FuzzCSV(f *testing.F) {
	f.Add("arrival_s,workload,gpus\n0,vgg,1\n\"1\",\"resnet2\",\n")
	f.Add("task,model,at,mem,priority\nvgg,x,1h,12G,high\n")
	f.Fuzz(func(t *testing.T, content string) { checkForeign(t, "x.csv", content) })
}
