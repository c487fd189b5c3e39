package runner

import (
	"context"
	"slices"
	"strings"
	"testing"

	"carma/containers/containerstest"
	"carma/runner/api"
)

// TestCommandGPUs: the number of GPUs is taken from the command line, or the image's, if none
// is given; a contradiction is refused, or only reported if the user requests that.
func TestCommandGPUs(t *testing.T) {
	g := newRig(t)
	g.engine.AddImage("plain", containerstest.Image{})
	g.engine.AddImage("two", containerstest.Image{Entrypoint: []string{"torchrun", "--nproc_per_node=2"}, Command: []string{"t.py"}})
	g.engine.AddImage("labelled", containerstest.Image{Labels: map[string]string{"carma.gpus": "2"}})
	rank2 := []string{"torchrun", "--nproc_per_node", "2", "t.py"}
	const two = "torchrun --nproc_per_node 2"
	for name, row := range map[string]struct {
		api.Submit
		gpus int
		line string // expected warning, or empty if there must be none
		says string
	}{
		"taken":            {api.Submit{Image: "plain", Command: rank2}, 2, "--gpus 2, from " + two, two},
		"of the image":     {api.Submit{Image: "two"}, 2, "--gpus 2, from torchrun --nproc_per_node=2", "torchrun --nproc_per_node=2"},
		"as given":         {api.Submit{Image: "plain", Command: rank2, GPUs: 2}, 2, "", ""},
		"by label":         {api.Submit{Image: "labelled", Command: rank2}, 2, "", ""},
		"without a GPU":    {api.Submit{Image: "plain", Command: rank2, NoGPU: true}, 0, "", ""},
		"warned of":        {api.Submit{Image: "plain", Command: rank2, GPUs: 1, CommandCheck: "warn"}, 1, "command: " + two + " starts 2 processes with a GPU each, and the task gets 1 GPU: write --gpus 2, or --nproc_per_node 1", ""},
		"not looked at":    {api.Submit{Image: "plain", Command: rank2, CommandCheck: "off"}, 1, "", ""},
		"more than likely": {api.Submit{Image: "plain", Command: []string{"mpirun", "-np", "8", "python", "t.py"}}, 1, "mpirun -np 8 may use 8 GPUs, and the task gets 1 GPU; if it does, write --gpus 8", ""},
		"piped":            {api.Submit{Image: "plain", Command: []string{"sh", "-c", "python t.py | tee log"}}, 1, `the exit code of "python t.py | tee log" is that of its last part`, ""},
	} {
		sub, err := g.api.Submit(g.ctx(), row.Submit)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if said := strings.Join(sub.Warnings, "\n"); row.line == "" && said != "" || !strings.Contains(said, row.line) {
			t.Errorf("%s: said %q, want %q", name, said, row.line)
		}
		task := g.finished(sub.Name)
		if task.Submit.GPUs != row.gpus || len(task.Attempts[0].GPUs) != row.gpus || task.Says == nil || task.Says.GPUs != row.says {
			t.Errorf("%s: %d GPUs, %+v", name, task.Submit.GPUs, task.Says)
		}
	}
	g.refusedAs(ann, api.Submit{Image: "plain", Command: rank2, GPUs: 1}, 422, "command: "+two+" starts 2 processes with a GPU each, and the task gets 1 GPU: write --gpus 2, or --nproc_per_node 1; --command-check warn submits it as it is")
	g.refusedAs(ann, api.Submit{Image: "plain", Command: []string{"torchrun", "--nproc_per_node", "8", "t.py"}}, 422, "command: torchrun --nproc_per_node 8 starts 8 processes with a GPU each, and a task here can have 2 GPUs; write --nproc_per_node 2")
	g.refusedAs(ann, api.Submit{Image: "plain", Env: []string{"CUDA_VISIBLE_DEVICES=1"}}, 422, "command: CUDA_VISIBLE_DEVICES=1 names GPU 1, and the task gets 1 GPU, which it sees as GPU 0: leave it out; --gpus device=1 asks for")
}

// TestUnbuffered checks that Python writes each line at once, unless the task or its image sets
// another value, and that the checkpoints that a task reads and writes are shown.
func TestUnbuffered(t *testing.T) {
	envs := make(chan []string, 1)
	run := func(_ context.Context, p *containerstest.Process) int { envs <- p.Spec.Env; return 0 }
	g := newRig(t)
	g.engine.AddImage("plain", containerstest.Image{Run: run})
	g.engine.AddImage("own", containerstest.Image{Run: run, Env: []string{"PYTHONUNBUFFERED="}})
	for name, row := range map[string]struct {
		api.Submit
		want bool
	}{
		"set":          {api.Submit{Image: "plain", Command: []string{"python", "t.py", "--output_dir", "/out", "--resume", "x"}}, true},
		"by the task":  {api.Submit{Image: "plain", Env: []string{"PYTHONUNBUFFERED="}}, false},
		"by the image": {api.Submit{Image: "own"}, false},
	} {
		sub, err := g.api.Submit(g.ctx(), row.Submit)
		if err != nil {
			t.Fatal(err)
		}
		env, task := <-envs, g.finished(sub.Name)
		if slices.Contains(env, "PYTHONUNBUFFERED=1") != row.want || task.Says.Unbuffered != row.want {
			t.Errorf("%s: %q, %+v", name, env, task.Says)
		}
		if name == "set" && (task.Says.Checkpoints != "--output_dir /out" || task.Says.Resume != "--resume x") {
			t.Errorf("%+v", task.Says)
		}
	}
}
