package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/mps"
)

// sharingText describes how tasks share a GPU, and the resulting slowdown. The slowdown by time
// slices was measured on an H100 (docs/hardware).
var sharingText = map[model.Sharing]string{
	model.SharingMPS:   "by MPS, at the same time",
	model.SharingUsers: "each user's tasks by MPS, at the same time; users take turns",
	model.SharingTurns: "by turns, which cost 10 % where tasks fill the GPU's time",
	model.SharingAlone: "one task at a time",
}

// checkSharing reports how tasks share each GPU, and whether MPS can do what the
// configuration asks for.
func (d *Doctor) checkSharing(ctx context.Context, f *Facts) api.Check {
	c := api.Check{Name: "GPU sharing", Status: "ok"}
	if s, ok := d.Source.(gpu.Sharer); ok {
		c.Detail = "simulated: " + sharingText[s.Sharing()]
		return c
	}
	var ways []string
	on := map[string][]string{}
	for _, of := range f.GPUs {
		text := sharingText[of.Shared]
		if of.NoMPS != "" {
			text += " (no MPS: " + of.NoMPS + ")"
		}
		if of.Exclusive && of.Shared == model.SharingAlone {
			c.Status, c.Fix = "warning", "nvidia-smi -c DEFAULT, and start the daemon again"
		}
		if on[text] == nil {
			ways = append(ways, text)
		}
		on[text] = append(on[text], fmt.Sprint(of.Index))
	}
	var parts []string
	for _, way := range ways {
		parts = append(parts, "GPU "+strings.Join(on[way], ", ")+": "+way)
	}
	c.Detail = strings.Join(parts, "; ")
	if f.NoMPS != "" && c.Fix == "" {
		c.Status, c.Fix = "warning", "mend that and start the daemon again, or write mps: off if turns are meant"
	}
	if d.MPS != nil && f.NoMPS == "" {
		d.checkMPS(ctx, &c)
	}
	return c
}

// checkMPS adds the running parts of MPS.
func (d *Doctor) checkMPS(ctx context.Context, c *api.Check) {
	m := d.MPS
	fail := func(detail, mend string) { c.Status, c.Detail, c.Fix = "failure", detail, mend }
	if _, err := mps.Find(m.Binary); err != nil && !d.AutoMPS {
		fail(err.Error()+"; tasks that share GPUs cannot start", "install the NVIDIA driver's utilities, or set mps: auto")
		return
	}
	list, err := m.List()
	if err != nil {
		fail(err.Error(), "make "+m.Dir+" readable and writable for the daemon")
		return
	}
	running, clients, faults := 0, 0, 0
	for _, g := range list {
		servers, err := g.Servers(ctx)
		if errors.Is(err, mps.ErrNotRunning) {
			continue
		}
		if err != nil {
			fail(fmt.Sprintf("group %s: %v", g.Name, err), "carma mps stop --all --force, and carma runs the tasks that died again")
			return
		}
		running++
		for _, s := range servers {
			clients += len(s.Clients)
			if s.Status == mps.Fault {
				faults++
			}
		}
	}
	c.Detail += fmt.Sprintf("; %d MPS control daemons, %d clients, in %s", running, clients, m.Dir)
	if faults > 0 {
		c.Status, c.Detail = "warning", fmt.Sprintf("%s; %d servers in FAULT until their clients have left", c.Detail, faults)
	}
}
