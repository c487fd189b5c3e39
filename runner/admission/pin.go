package admission

import (
	"errors"
	"strings"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/request"
)

// asked returns the event that pins a submitted task to its named GPUs, or nil if no GPU
// was named. Only the loop calls it.
func (a *Controller) asked(now units.Instant, req model.Request, c *candidate) (model.Event, error) {
	names := c.rec.Submit.GPUIDs
	if len(names) == 0 {
		return nil, nil
	}
	need := c.est.Point
	if need == 0 {
		need = c.est.Memory
	}
	if c.est.WholeGPU {
		need = 0
	}
	ids, err := a.cfg.Control.GoesTo(names, "the task", req.GPUs, need)
	if refused, ok := errors.AsType[*request.Error](err); ok {
		return nil, request.Errorf(422, "--gpus device=%s: %s", strings.Join(names, ","), refused.Text)
	}
	return model.Pinned{At: now, Task: req.ID, GPUs: ids}, err
}

// checkGPUIDs refuses named GPUs for a task that requests no GPU, or any number of GPUs.
func checkGPUIDs(s api.Submit) error {
	switch n := len(s.GPUIDs); {
	case n == 0:
	case s.NoGPU:
		return request.Errorf(422, "gpu_ids: the task asks for no GPU; leave one of them out")
	case s.GPUs == api.AllGPUs || s.GPUs > n:
		return request.Errorf(422, "gpu_ids: %d named, fewer than the GPUs that it asks for; leave gpus out", n)
	}
	return nil
}
