package root

import (
	"os"
	"time"

	"carma/internal/units"
	"carma/runner/api"
)

// away does the same as busy, and adds a task that ann has suspended on GPU 3.
func (d *fakeDaemon) away() {
	d.busy()
	gib := func(f float64) int64 { return int64(units.GiB.Scale(f)) }
	at := func(before time.Duration) time.Time { return noon.Add(-before) }
	had := api.GPURef{Index: 3, UUID: "GPU-00000003"}
	t := api.Task{
		ID: 22, Name: "vit", User: "ann", UID: os.Getuid(), Image: "train:1", Priority: "normal", GPUCount: 1, Phase: "suspended", Need: gib(20.1), Submitted: at(5 * time.Hour), Started: at(4 * time.Hour),
		Submit:     api.Submit{Image: "train:1"},
		Attempts:   []api.Attempt{{N: 1, GPUs: []api.GPURef{had}, Grant: gib(20.1), Launched: at(4 * time.Hour), Started: at(4 * time.Hour), Suspended: 90 * time.Minute, EnergyJ: 900_000}},
		Suspension: &api.Suspension{By: "ann", Why: "room for the demo", Since: at(90 * time.Minute), Host: gib(20.1), From: []api.GPURef{had}},
		Waits:      "suspended by ann: room for the demo", WaitsCode: "suspended",
		Progress: &api.Progress{Done: 600, Total: 1000, Unit: "steps", Share: 0.6, Source: "tqdm"},
	}
	d.tasks = append(d.tasks, &fakeTask{Task: t, why: api.Why{Task: 22, Phase: t.Phase, Now: noon, ReasonCode: "suspended",
		Summary: "suspended by ann: room for the demo; it has 20.1 GiB in host memory and comes back after carma resume 22"}})
	d.gpus[3].Fault = ""
	d.gpus[3].Suspended = []api.Away{{Task: 22, Name: "vit", Host: gib(20.1), Since: at(90 * time.Minute)}}
	for i := range d.gpus {
		d.gpus[i].Suspend = "move"
	}
	d.info.Suspended = 1
	d.info.Host = &api.Host{Total: gib(512), Memory: gib(480), Booked: gib(100.1), Away: gib(20.1), Used: gib(70), CPUs: 64, CPUsBooked: 8, Tasks: []api.HostMember{{Task: 22, Name: "vit", Memory: gib(16), Away: gib(20.1), Used: gib(30)}}}
}
