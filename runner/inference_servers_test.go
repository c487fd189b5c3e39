package runner

import (
	"context"
	"slices"
	"strings"
	"testing"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/limiter"
)

// TestTakes: a program that takes a share of a GPU by design is recognised. Its share of
// each GPU's memory is allocated, or it gets the share that corresponds to --mem; the
// submitter and inspect see it. --gpu-share off changes nothing.
func TestTakes(t *testing.T) {
	specs := make(chan *containerstest.Process, 1)
	run := func(_ context.Context, p *containerstest.Process) int { specs <- p; return 0 }
	g := newRig(t, byMemory, func(g *rig) { g.opt.Limits = limiter.Options{Caps: limiter.CapsGrowth, Context: units.GiB} })
	for _, image := range []string{"vllm/vllm-openai", "lab/jax", "ggml-org/llama.cpp"} {
		g.engine.AddImage(image, containerstest.Image{Run: run})
	}
	const book = "of a GPU's memory (its default, --gpu-memory-utilization 0.9): 36.0 GiB booked; --mem says another amount, --gpu-share off"
	serve := []string{"--model", "m"}
	for name, row := range map[string]struct {
		api.Submit
		line    string
		booked  units.Bytes // of each GPU, or 0 for whole GPUs
		command []string
		env     string
		takes   api.Takes
	}{
		"its share": {
			api.Submit{Image: "vllm/vllm-openai", Command: serve}, "vLLM (image vllm/vllm-openai) takes 90 % " + book, 36 * units.GiB, serve, "",
			api.Takes{Program: "vLLM", By: "image vllm/vllm-openai", Share: 0.9, From: "its default, --gpu-memory-utilization 0.9"},
		},
		"on two": {
			api.Submit{Image: "vllm/vllm-openai", Command: serve, GPUs: 2}, "takes 90 % " + book, 36 * units.GiB, serve, "",
			api.Takes{Program: "vLLM", By: "image vllm/vllm-openai", Share: 0.9, From: "its default, --gpu-memory-utilization 0.9"},
		},
		"told by --mem": {
			api.Submit{Image: "vllm/vllm-openai", Command: serve, Mem: int64(10 * units.GiB)},
			"vLLM (image vllm/vllm-openai): carma sets --gpu-memory-utilization so that it takes the 10.0 GiB of --mem; --gpu-share off leaves it alone", 10 * units.GiB,
			[]string{"--model", "m", "--gpu-memory-utilization", "0.25"}, "",
			api.Takes{Program: "vLLM", By: "image vllm/vllm-openai", Share: 0.9, From: "its default, --gpu-memory-utilization 0.9", Sets: "--gpu-memory-utilization"},
		},
		"set by the user": {
			api.Submit{Image: "vllm/vllm-openai", Command: []string{"--gpu-memory-utilization=0.5"}, Mem: int64(10 * units.GiB)},
			"takes 50 % of a GPU's memory (--gpu-memory-utilization 0.5), at least 20.0 GiB; booked are the 10.0 GiB of --mem", 10 * units.GiB, []string{"--gpu-memory-utilization=0.5"}, "",
			api.Takes{Program: "vLLM", By: "image vllm/vllm-openai", Share: 0.5, From: "--gpu-memory-utilization 0.5"},
		},
		"nearly all": {
			api.Submit{Image: "vllm/vllm-openai", Command: []string{"--gpu-memory-utilization", "1"}}, "(--gpu-memory-utilization 1), so it gets whole GPUs", 0, []string{"--gpu-memory-utilization", "1"}, "",
			api.Takes{Program: "vLLM", By: "image vllm/vllm-openai", Share: 1, From: "--gpu-memory-utilization 1"},
		},
		"a variable": {
			api.Submit{Image: "lab/jax", Mem: int64(11 * units.GiB), Env: []string{"XLA_PYTHON_CLIENT_PREALLOCATE=true"}}, "carma sets XLA_PYTHON_CLIENT_MEM_FRACTION so that", 11 * units.GiB, nil, "XLA_PYTHON_CLIENT_MEM_FRACTION=0.25",
			api.Takes{Program: "JAX", By: "variable XLA_PYTHON_CLIENT_PREALLOCATE", Share: 0.75, From: "its default", Sets: "XLA_PYTHON_CLIENT_MEM_FRACTION"},
		},
		"growth": {
			api.Submit{Image: "lab/jax", Mem: int64(units.GiB)}, "JAX (image lab/jax): carma sets XLA_PYTHON_CLIENT_PREALLOCATE=false", units.GiB, nil, "XLA_PYTHON_CLIENT_PREALLOCATE=false",
			api.Takes{Program: "JAX", By: "image lab/jax", Note: "carma sets XLA_PYTHON_CLIENT_PREALLOCATE=false where it may share a GPU, so that it takes memory as it needs it"},
		},
		"no share": {
			api.Submit{Image: "ggml-org/llama.cpp", Command: []string{"-m", "x"}, Mem: int64(units.GiB)}, "llama.cpp (image ggml-org/llama.cpp): it takes the size of its model's file", units.GiB, []string{"-m", "x"}, "",
			api.Takes{Program: "llama.cpp", By: "image ggml-org/llama.cpp", Note: "it takes the size of its model's file and its cache; say it with --mem"},
		},
	} {
		sub, err := g.api.Submit(g.ctx(), row.Submit)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !strings.Contains(strings.Join(sub.Warnings, "\n"), row.line) {
			t.Errorf("%s: said %q, want %q", name, sub.Warnings, row.line)
		}
		p := <-specs
		task := g.finished(sub.Name)
		if a := task.Attempts[0]; row.booked > 0 && a.Grant != int64(row.booked) || row.booked == 0 && !task.Estimate.WholeGPU {
			t.Errorf("%s: booked %d, want %s; %+v", name, a.Grant, row.booked, task.Estimate)
		}
		if !slices.Equal(p.Spec.Command, row.command) || row.env != "" && !slices.Contains(p.Spec.Env, row.env) {
			t.Errorf("%s: command %q, environment %q", name, p.Spec.Command, p.Spec.Env)
		}
		if task.Takes == nil || *task.Takes != row.takes {
			t.Errorf("%s: inspect shows %+v, want %+v", name, task.Takes, row.takes)
		}
	}

	off, err := g.api.Submit(g.ctx(), api.Submit{Image: "vllm/vllm-openai", Command: serve, Mem: int64(units.GiB), GPUShare: "off"})
	if err != nil {
		t.Fatal(err)
	}
	if p := <-specs; !slices.Equal(p.Spec.Command, serve) || len(off.Warnings) > 0 {
		t.Errorf("switched off: %q, command %q", off.Warnings, p.Spec.Command)
	}
	if task := g.finished(off.Name); task.Takes != nil || task.Attempts[0].Grant != int64(units.GiB) {
		t.Errorf("switched off: %+v", task.Takes)
	}
	g.refusedAs(ann, api.Submit{Image: "vllm/vllm-openai", Command: []string{"--gpu-memory-utilization", "90"}}, 422, `command: --gpu-memory-utilization "90": vLLM takes a number above 0, at most 1; write for example --gpu-memory-utilization 0.5; --gpu-share off`)
}

// TestTakesOfKinds: of GPUs of two sizes, each gets its own share.
func TestTakesOfKinds(t *testing.T) {
	started := make(chan struct{})
	g := newRig(t, byMemory, func(g *rig) {
		g.cards.devices[1].Capacity = 80 * units.GiB
		g.engine.AddImage("vllm/vllm-openai", containerstest.Image{Run: func(ctx context.Context, _ *containerstest.Process) int {
			started <- struct{}{}
			<-ctx.Done()
			return 143
		}})
	})
	sub, err := g.api.Submit(g.ctx(), api.Submit{Image: "vllm/vllm-openai", Command: []string{"m", "--gpu-memory-utilization", "0.5"}, GPUs: 2})
	if err != nil || !strings.Contains(strings.Join(sub.Warnings, "\n"), "20.0 GiB to 40.0 GiB, by GPU, booked") {
		t.Fatalf("%+v, %v", sub, err)
	}
	<-started
	rec, err := g.find.Find(sub.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, grant := range rec.Task.Attempts[0].Grants {
		if half := g.gpus.Capacity(grant.GPU) / 2; grant.Memory < half || grant.Memory > half+units.MiB {
			t.Errorf("%s of %s granted", grant.Memory, g.gpus.Capacity(grant.GPU))
		}
	}
}
