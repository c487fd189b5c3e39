package runner

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/loop"
	"carma/runner/record"
)

// inventory holds the GPUs that were found since the start. It is replaced, not changed.
type inventory struct {
	devices map[model.GPUID]model.GPUInfo
	found   map[model.GPUID]gpu.Device // the same GPUs as the source lists them
	// gone marks GPUs that the source no longer lists. Their data is kept for the tasks that
	// were on them.
	gone map[model.GPUID]bool
	// least and most are the capacities of the smallest and the largest GPU.
	least, most units.Bytes
}

func (r *Runner) devices() map[model.GPUID]model.GPUInfo { return r.known().devices }

func (r *Runner) found() map[model.GPUID]gpu.Device { return r.known().found }

func (r *Runner) known() *inventory {
	if k := r.gpus.Load(); k != nil {
		return k
	}
	return &inventory{}
}

// findGPUs lists the GPUs.
func (r *Runner) findGPUs(ctx context.Context) error {
	devices, err := r.GPUs.GPUs(ctx)
	if err != nil {
		return fmt.Errorf("list the GPUs: %w", err)
	}
	if _, coming := r.GPUs.(gpu.Coming); len(devices) == 0 && !coming {
		return fmt.Errorf("%s has no GPUs", r.GPUs.Name())
	}
	was := r.known()
	now := &inventory{devices: map[model.GPUID]model.GPUInfo{}, found: map[model.GPUID]gpu.Device{}, gone: map[model.GPUID]bool{}}
	maps.Copy(now.devices, was.devices)
	maps.Copy(now.found, was.found)
	for id := range was.devices {
		now.gone[id] = true
	}
	for _, d := range devices {
		id := model.GPUID(d.UUID)
		delete(now.gone, id)
		now.found[id] = d
		now.devices[id] = model.GPUInfo{
			ID: id, Index: d.Index, Node: d.Node, Model: d.Model, Capacity: d.Capacity, Boot: cmp.Or(d.Boot, r.boot),
			MIG: d.Parent != "", Link: d.Link, Socket: d.Socket,
		}
	}
	for _, d := range now.devices {
		if now.least == 0 || d.Capacity < now.least {
			now.least = d.Capacity
		}
		now.most = max(now.most, d.Capacity)
	}
	r.gpus.Store(now)
	return nil
}

// followGPUs lists the GPUs again when the source says that they have changed, until ctx
// ends.
func (r *Runner) followGPUs(ctx context.Context) {
	source, ok := r.GPUs.(gpu.Coming)
	if !ok {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-source.News():
		}
		if err := r.findGPUs(ctx); err != nil {
			r.Log.Error().Err(err).Msg("the GPUs cannot be listed; those of before stay")
			continue
		}
		r.loop.Post(&loop.Change{Keep: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
			return []model.Event{r.gpusFound(now)}, nil, nil
		}})
	}
}
