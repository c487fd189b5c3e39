package root

import (
	"cmp"
	"os"
	"time"

	"carma/internal/units"
	"carma/runner/api"
)

// busy fills a daemon with a state that contains each kind of object.
func (d *fakeDaemon) busy() {
	gib := func(f float64) int64 { return int64(units.GiB.Scale(f)) }
	gpu := func(indexes ...int) (refs []api.GPURef) {
		for _, i := range indexes {
			refs = append(refs, api.GPURef{Index: i, UUID: "GPU-0000000" + string(rune('0'+i))})
		}
		return refs
	}
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	code := func(n int) *int { return &n }
	measured := api.Estimate{Memory: gib(12.3), Method: "catalogue", Detail: "resnet50 at batch size 128: 12.1 GiB measured, 12.3 GiB booked"}
	add := func(t api.Task, why api.Why) {
		t.Submit.Image, t.Priority = t.Image, cmp.Or(t.Priority, "normal")
		if t.UID = 12345; t.User == "ann" {
			t.UID = os.Getuid()
		}
		why.Task, why.Phase, why.Position, why.Now = t.ID, t.Phase, t.Position, noon
		d.tasks = append(d.tasks, &fakeTask{Task: t, why: why})
	}
	add(api.Task{
		ID: 12, Name: "warmup", User: "ann", Image: "train:1", GPUCount: 1, Phase: "succeeded", Need: gib(3.5), Submitted: ago(26 * time.Hour),
		Started: ago(25 * time.Hour), Ended: ago(24 * time.Hour), ExitCode: code(0),
		Attempts: []api.Attempt{{N: 1, GPUs: gpu(3), Grant: gib(3.5), Launched: ago(25 * time.Hour), Started: ago(25 * time.Hour), Ended: ago(24 * time.Hour), Outcome: "ok", Peak: gib(3.25), EnergyJ: 412_300}}, EnergyJ: 412_300,
	}, api.Why{Summary: "It succeeded."})
	add(api.Task{
		ID: 13, Name: "typo", User: "bob", Image: "train:1", GPUCount: 1, Phase: "failed", Need: gib(1), Submitted: ago(5 * time.Hour),
		Started: ago(4 * time.Hour), Ended: ago(4*time.Hour - 3*time.Second), ExitCode: code(1), Reason: "exit code 1 (ModuleNotFoundError: No module named 'trch')",
		Attempts: []api.Attempt{{N: 1, GPUs: gpu(2), Grant: gib(1), Launched: ago(4 * time.Hour), Started: ago(4 * time.Hour), Ended: ago(4*time.Hour - 3*time.Second), Outcome: "program", ExitCode: 1, Message: "ModuleNotFoundError: No module named 'trch'", EnergyJ: 180}}, EnergyJ: 180,
	}, api.Why{Summary: "The program failed with exit code 1."})
	add(api.Task{ID: 14, Name: "second-thoughts", User: "bob", Image: "train:1", GPUCount: 1, Phase: "cancelled", Submitted: ago(3 * time.Hour), Ended: ago(2 * time.Hour), Reason: "stopped by bob"},
		api.Why{Summary: "It was stopped by bob before it ran."})
	add(api.Task{
		ID: 17, Name: "resnet-lr-0.001", User: "ann", Image: "train:1", GPUCount: 1, Phase: "running", Need: gib(12.3), Estimate: measured, Submitted: ago(2 * time.Hour), Started: ago(100 * time.Minute),
		Submit:   api.Submit{Labels: map[string]string{"sweep": "7"}, ContainerOptions: api.ContainerOptions{Ports: []string{"8888"}}},
		Ports:    []api.OpenPort{{Port: "8888/tcp", Address: "127.0.0.1:49153"}},
		Attempts: []api.Attempt{{N: 1, GPUs: gpu(0), Grant: gib(12.3), Launched: ago(101 * time.Minute), Started: ago(100 * time.Minute)}},
		Progress: &api.Progress{
			Done: 1850, Total: 5000, Unit: "steps", Share: 0.37, Rate: 0.26, RateError: 0.02, Source: "tqdm", ETA: ago(-170 * time.Minute), ETABasis: "output",
			Slowdown: &api.Slowdown{Value: 1.32, Basis: "measured", Error: 0.03, Predicted: 1.25, Beside: []api.TaskRef{{ID: 18, Name: "bert-large-uncased-whole-word-masking-finetuned-squad"}}},
		},
	}, api.Why{Summary: "It fits on GPU 0 beside 1 other task."})
	add(api.Task{
		ID: 18, Name: "bert-large-uncased-whole-word-masking-finetuned-squad", User: "christopher.robin", Image: "registry.example.com/nlp/bert:2", GPUCount: 2, Phase: "running", Need: gib(25), Submitted: ago(90 * time.Minute), Started: ago(30 * time.Second),
		Submit: api.Submit{Labels: map[string]string{"sweep": "8"}},
		Attempts: []api.Attempt{
			{N: 1, GPUs: gpu(0, 1), Grant: gib(18.9), Launched: ago(80 * time.Minute), Started: ago(79 * time.Minute), Ended: ago(60 * time.Minute), Outcome: "gpu-oom", ExitCode: 1, Peak: gib(19.2), Message: "torch.OutOfMemoryError: CUDA out of memory"},
			{N: 2, GPUs: gpu(0, 1), Grant: gib(25), Launched: ago(40 * time.Second), Started: ago(30 * time.Second)},
		},
		Progress: &api.Progress{
			Source: "prediction", ETA: ago(-45 * time.Minute), ETABasis: "prediction",
			Slowdown: &api.Slowdown{Value: 1.18, Basis: "predicted", Predicted: 1.18, Beside: []api.TaskRef{{ID: 17, Name: "resnet-lr-0.001"}}},
		},
	}, api.Why{Summary: "It runs again with more memory after it ran out of 18.9 GiB."})
	add(api.Task{
		ID: 19, Name: "gpt2", User: "ann", Image: "train:2", GPUCount: 1, Phase: "recovering", Position: 1, Waits: "GPU 2 warms up for another 12s", Need: gib(31), Submitted: ago(50 * time.Minute), Started: ago(40 * time.Minute),
		Attempts: []api.Attempt{{N: 1, GPUs: gpu(2), Grant: gib(24), Launched: ago(41 * time.Minute), Started: ago(40 * time.Minute), Ended: ago(2 * time.Minute), Outcome: "gpu-oom", ExitCode: 1}},
	}, api.Why{
		Queue: "recovery", Summary: "No GPU takes it now: GPU 2 warms up for another 12s.",
		Start: &api.Start{Earliest: ago(-12 * time.Second), Latest: ago(-45 * time.Minute)},
		GPUs: []api.WhyGPU{
			{GPURef: gpu(0)[0], Rule: "memory", Text: "memory 37.3 of 40.0 GiB reserved, needs 31.0"},
			{GPURef: gpu(1)[0], Rule: "memory", Text: "memory 25.0 of 40.0 GiB reserved, needs 31.0"},
			{GPURef: gpu(2)[0], Rule: "warm-up", Text: "is warming up task 17"},
			{GPURef: gpu(3)[0], Rule: "smact", Text: "SMACT 0.91, at or over 0.80"},
		},
	})
	add(api.Task{
		ID: 20, Name: "llama", User: "dee", Image: "train:2", GPUCount: 4, Phase: "queued", Position: 2, Waits: "needs 4 GPUs of its own, 1 is free", Alone: true, Submitted: ago(20 * time.Minute),
		Estimate: api.Estimate{WholeGPU: true, Method: "whole-gpu", Detail: "nothing is known about its memory, so it gets whole GPUs"},
	}, api.Why{
		Queue: "main", Summary: "It needs 4 GPUs of its own and 1 is free.",
		Start: &api.Start{Earliest: ago(-170 * time.Minute)},
		GPUs:  []api.WhyGPU{{GPURef: gpu(0)[0], Rule: "tasks", Text: "has 2 tasks, the most allowed"}, {GPURef: gpu(3)[0], Fits: true, Text: "fits"}},
	})
	add(api.Task{ID: 21, Name: "new", User: "dee", Image: "train:2", GPUCount: 1, Phase: "estimating", Submitted: ago(time.Second)}, api.Why{Summary: "Its memory is being estimated."})

	a100 := func(i int, g api.GPU) {
		g.GPURef, g.Model, g.Capacity, g.Headroom = gpu(i)[0], "NVIDIA A100-SXM4-40GB", gib(40), gib(0.5)
		g.Sharing = "mps"
		if g.Tasks == nil {
			g.Tasks = []api.Resident{}
		}
		d.gpus = append(d.gpus, g)
	}
	a100(0, api.GPU{Reserved: gib(37.3), Used: gib(30.1), SMACT: 0.81, PowerW: 331.4, Tasks: []api.Resident{
		{Task: 17, Name: "resnet-lr-0.001", Grant: gib(12.3), Used: gib(11)},
		{Task: 18, Name: "bert-large-uncased-whole-word-masking-finetuned-squad", Grant: gib(25), Used: gib(19.1)},
	}})
	a100(1, api.GPU{Reserved: gib(25), Used: gib(24.8), SMACT: 0.555, PowerW: 280, Tasks: []api.Resident{{Task: 18, Name: "bert-large-uncased-whole-word-masking-finetuned-squad", Grant: gib(25)}}})
	a100(2, api.GPU{Used: gib(1.5), Foreign: gib(1.5), PowerW: 60, HeldFor: 20})
	a100(3, api.GPU{Fault: "Xid 79: GPU has fallen off the bus", PowerW: 0})

	d.checks = []api.Check{
		{Name: "engine", Status: "ok", Detail: "docker 20.10.24"},
		{Name: "disk", Status: "warning", Detail: "0.9 GiB free in /var/lib/carma", Fix: "carma rm $(carma ps -aq)"},
		{Name: "image", Status: "failure", Detail: "no image carma/simtask:latest", Fix: "make image"},
	}
}
