package taskfile

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"carma/runner/api"
)

func TestParseArray(t *testing.T) {
	for text, want := range map[string]Array{
		"1-3":          {[]int{1, 2, 3}, 0},
		"0-9%3":        {[]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 3},
		"5,1,3":        {[]int{5, 1, 3}, 0},
		"0-20:5":       {[]int{0, 5, 10, 15, 20}, 0},
		"0-9:4,7-7%12": {[]int{0, 4, 8, 7}, 12},
		"7":            {[]int{7}, 0},
	} {
		if got, err := ParseArray(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"": "no range", "a": "no range", "1-": "no range", "-3": "no range", "1-2-3": "no range", "1,": "no range", "1 - 3": "no range",
		"9-1": "write 1-9", "1-9:0": "step of 0", "1,1": "twice", "1%": "%", "1%x": "%x", "1%-1": "%-1", "0-10000": "more than 10000",
		"1-99999999999": "no range",
	} {
		if got, err := ParseArray(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %q", text, got, err, want)
		}
	}
	if got, err := ParseArray("0-9999"); err != nil || len(got.Indices) != MaxTasks {
		t.Errorf("the longest: %d, %v", len(got.Indices), err)
	}
}

func TestVariable(t *testing.T) {
	for key, want := range map[string]string{"lr": "CARMA_SWEEP_LR", "batch-size": "CARMA_SWEEP_BATCH_SIZE", "optim.eps_2": "CARMA_SWEEP_OPTIM_EPS_2"} {
		if got := (Axis{Key: key}).Variable(); got != want {
			t.Errorf("%s: %s", key, got)
		}
	}
	for key, want := range map[string]bool{"bs": true, "batch-size": true, "batch_size": true, "BatchSize": true, "batches": false, "b": false} {
		if (Axis{Key: key}).IsBatch() != want {
			t.Errorf("%s: %v", key, !want)
		}
	}
}

const everything = `
group: exp
defaults:
  image: my/base:1
  env: {A: 1, B: two}
  labels: {team: vision}
  mem: 4G
tasks:
  eval:
    after: [train, "prep:any", 17]
    command: [python, eval.py, ""]
    gpus: 2
    exclusive: true
    priority: high
    retries: 2
    time: 2h
    slot: 30m
    stop-grace: 1m
    delay: 90s
    volumes: ["./data:/data:ro"]
    env-file: vars.env
    entrypoint: ""
    workdir: /work
    shm-size: 1G
    pull: never
    probe: false
  prep:
    image: my/prep:1
    command: python prep.py --fast
    env: [B=three, C=4=5]
  train:
    after: prep
    est-model: resnet50
    batch-size: 32
    array: 1-4%2
    sweep:
      lr: [0.1, 1e-3]
      opt: sgd
`

func TestParse(t *testing.T) {
	text := strings.Replace(everything, "    entrypoint: \"\"\n", "", 1)
	f, err := Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, task := range f.Tasks {
		names = append(names, task.Submit.Part)
	}
	if got := strings.Join(names, " "); f.Group != "exp" || got != "prep train eval" {
		t.Fatalf("group %s has %s", f.Group, got)
	}
	base := api.Submit{Image: "my/base:1", Env: []string{"A=1", "B=two"}, Labels: map[string]string{"team": "vision"}, Mem: 4 << 30}
	prep, train, eval := base, base, base
	prep.Part, prep.Image, prep.Command, prep.Env = "prep", "my/prep:1", []string{"python", "prep.py", "--fast"}, []string{"A=1", "B=two", "B=three", "C=4=5"}
	train.Part, train.EstModel, train.BatchSize, train.After = "train", "resnet50", 32, []api.Dependency{{Part: "prep"}}
	eval.Part, eval.Command, eval.GPUs, eval.Exclusive, eval.Priority, eval.Retries = "eval", []string{"python", "eval.py", ""}, 2, true, "high", 2
	eval.TimeLimit, eval.Slot, eval.StopGrace, eval.Delay = 2*time.Hour, 30*time.Minute, time.Minute, 90*time.Second
	eval.WorkDir, eval.ShmSize, eval.Pull = "/work", 1<<30, "never"
	eval.After = []api.Dependency{{Part: "train"}, {Part: "prep", Condition: "any"}, {Task: "17"}}
	for i, want := range []api.Submit{prep, train, eval} {
		if got := f.Tasks[i].Submit; !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	if v := f.Tasks[2]; v.Volumes[0] != "./data:/data:ro" || v.EnvFiles[0] != "vars.env" {
		t.Errorf("eval: %+v", v)
	}
	if v := f.Tasks[1]; v.Array.Parallel != 2 || v.Count() != 8 || !reflect.DeepEqual(v.Sweep, []Axis{{"lr", []string{"0.1", "1e-3"}}, {"opt", []string{"sgd"}}}) {
		t.Errorf("train: %+v", v)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[1, 2]", "t.yaml:1: keys and values are missing"},
		{"image: x\nname: 17", `t.yaml:2: name: "17" cannot be a name`},
		{"tasks: {a: {image: x, name: b}}", "tasks.a.name: a task is called by its key below tasks"},
		{"tasks: {}", "t.yaml:1: tasks: no task"},
		{"tasks: {a b: {image: x}}", `tasks.a b: "a b" cannot be a name`},
		{"image: y\ntasks: {a: {image: x}}", "t.yaml:1: image: a task's key beside tasks"},
		{"taks: {a: {image: x}}\ntasks: {}", "t.yaml:1: taks: unknown key; nearest: tasks"},
		{"defaults: {after: a}\ntasks: {a: {image: x}}", "defaults.after: every task would wait for itself"},
		{"image: x\ndefaults: {mem: 1G}", "defaults: without tasks"},
		{"image: x\nmem: 0", "mem: nothing is not an amount of memory"},
		{"image: x\nprobe: maybe", `"maybe" is not true or false`},
		{"image: x\npull: alway", "nearest: always"},
		{"image: x\ntime: 3 apples", `"3 apples" is not a time`},
		{"image: x\nmem: 12", "mem: 12 what? write 12G"},
		{"image: x\nshm-size: 8", "shm-size: 8 what? write 8G"},
		{"image: [x]", "one value is expected"},
		{"image:", "image: no value"},
		{"image: x\nenv: [A]", `"A" is not KEY=value`},
		{"image: x\nenv: {A: [1]}", `"A" has no value`},
		{"image: x\nsweep: {}", "no parameters"},
		{"image: x\nsweep: [lr]", "no parameters"},
		{"image: x\nsweep: {lr: [1], lr: [2]}", "lr a second time"},
		{"image: x\nsweep: {bs: [0]}", "is the batch size"},
		{"image: x\nparallel: 3", "without an array or a sweep there is one task"},
		{"image: x\narray: 1-3%2\nparallel: 3", "the array says %2"},
		{"image: x\nprobe: true\nmem: 3G", "leave one of them out"},
		{"image: x\nworkdir: here", "here is not absolute"},
		{"image: x\narray: 1-5000\nsweep: {a: [1, 2, 3]}", "more than 10000 tasks"},
		{"tasks: {a: {image: x, array: 1-6000}, b: {image: x, array: 1-6000}}", "t.yaml: 12000 tasks"},
		{"image: x\nafter: nobody", `unknown task "nobody"`},
		{"image: &a x\ncommand: [*a, *a]", "anchors and aliases are not part of the format"},
		{"<<: {image: x}", "anchors and aliases"},
		{"? [a]\n: b", "a key that is not a word"},
		{"image: \"x", "not YAML"},
		{strings.Repeat("[", 20000), "not YAML"},
	} {
		_, err := Parse("t.yaml", []byte(c.text))
		var placed *Error
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &placed) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: %v, want %q", c.text, err, c.want)
		}
	}
}

// TestBomb: a file that would become too large by its aliases is refused. A large file is
// refused before it is parsed.
func TestBomb(t *testing.T) {
	bomb := "a0: &a0 [x, x]\n"
	for i := 1; i < 40; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
	}
	if _, err := Parse("b.yaml", []byte(bomb)); err == nil || !strings.Contains(err.Error(), "b.yaml:1: a0: anchors and aliases") {
		t.Errorf("a bomb: %v", err)
	}
	if _, err := Read("b.yaml", strings.NewReader(strings.Repeat("# large\n", 10<<20/8))); err == nil || err.Error() != "b.yaml: larger than 1024 KiB, the most a task file may have" {
		t.Errorf("10 MB: %v", err)
	}
}

// FuzzParse checks that any file is read, or refused with a message of one line.
func FuzzParse(f *testing.F) {
	f.Add([]byte(everything))
	f.Add([]byte("image: x\narray: 1-3%2\nsweep: {bs: [1, 2]}\nafter: [3]"))
	f.Add([]byte("tasks: {a: {image: x, after: b}, b: {image: x, after: a}}"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := Parse("f", content)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Fatalf("%q has no place", err)
			}
			return
		}
		done := map[string]bool{}
		for i := range file.Tasks {
			task := &file.Tasks[i]
			if task.Submit.Image == "" || task.Count() > MaxTasks {
				t.Fatalf("%+v", task)
			}
			for _, d := range task.Submit.After {
				if d.Part != "" && !done[d.Part] {
					t.Fatalf("%s before %s, for which it waits", task.Submit.Part, d.Part)
				}
			}
			done[task.Submit.Part] = true
		}
	})
}
