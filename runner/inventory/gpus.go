package inventory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/api"
	"carma/runner/gpu"

	"github.com/rs/zerolog"
)

// GPUs holds the GPUs that were found since the start.
type GPUs struct {
	source gpu.Source
	boot   string // of the machine, or "" if unknown
	log    zerolog.Logger
	now    atomic.Pointer[list] // nil before the first list
}

// list is replaced, not changed.
type list struct {
	infos   map[model.GPUID]model.GPUInfo
	devices map[model.GPUID]gpu.Device // the same GPUs as the source lists them
	// gone marks GPUs that the source no longer lists. Their data is kept for the tasks that
	// were on them.
	gone map[model.GPUID]bool
	// least and most are the capacities of the smallest and the largest GPU.
	least, most units.Bytes
}

// New lists the GPUs of a source. boot is the machine's boot, or "" if unknown.
func New(ctx context.Context, source gpu.Source, boot string, log zerolog.Logger) (*GPUs, error) {
	g := &GPUs{source: source, boot: boot, log: log}
	return g, g.find(ctx)
}

func (g *GPUs) list() *list {
	if now := g.now.Load(); now != nil {
		return now
	}
	return &list{}
}

// Infos returns the GPUs as the mapper knows them. The map must not be changed.
func (g *GPUs) Infos() map[model.GPUID]model.GPUInfo { return g.list().infos }

// Devices returns the GPUs as the source lists them. The map must not be changed.
func (g *GPUs) Devices() map[model.GPUID]gpu.Device { return g.list().devices }

// Ordered returns the GPUs as the source lists them, in order of their indices.
func (g *GPUs) Ordered() []gpu.Device {
	return slices.SortedFunc(maps.Values(g.Devices()), func(a, b gpu.Device) int { return cmp.Compare(a.Index, b.Index) })
}

// Listed returns the GPUs that the source lists now, in order of their indices.
func (g *GPUs) Listed() (all []model.GPUInfo) {
	now := g.list()
	for id, info := range now.infos {
		if !now.gone[id] {
			all = append(all, info)
		}
	}
	slices.SortFunc(all, func(a, b model.GPUInfo) int { return cmp.Compare(a.Index, b.Index) })
	return all
}

// Capacity returns the memory of a GPU, or 0 for an unknown GPU.
func (g *GPUs) Capacity(id model.GPUID) units.Bytes { return g.Infos()[id].Capacity }

// Capacities returns the capacities of the smallest and the largest GPU.
func (g *GPUs) Capacities() (least, most units.Bytes) {
	now := g.list()
	return now.least, now.most
}

// Smallest returns the capacity of the smallest GPU of grants.
func (g *GPUs) Smallest(grants []model.Grant) (least units.Bytes) {
	for i, grant := range grants {
		if c := g.Capacity(grant.GPU); i == 0 || c < least {
			least = c
		}
	}
	return least
}

// Ref returns the index and the UUID of a GPU. The index of an unknown GPU is -1.
func (g *GPUs) Ref(id model.GPUID) api.GPURef {
	ref := api.GPURef{UUID: string(id), Index: -1}
	if d, ok := g.Infos()[id]; ok {
		ref.Index = d.Index
	}
	return ref
}

// Index returns the index of a GPU, or -1 if it is unknown.
func (g *GPUs) Index(id model.GPUID) int { return g.Ref(id).Index }

// Text names GPUs by their indices.
func (g *GPUs) Text(ids []model.GPUID) string { return words.GPUs(ids, g.Index) }

// find lists the GPUs.
func (g *GPUs) find(ctx context.Context) error {
	devices, err := g.source.GPUs(ctx)
	if err != nil {
		return fmt.Errorf("list the GPUs: %w", err)
	}
	if _, coming := g.source.(gpu.Coming); len(devices) == 0 && !coming {
		return fmt.Errorf("%s has no GPUs", g.source.Name())
	}
	was := g.list()
	now := &list{infos: map[model.GPUID]model.GPUInfo{}, devices: map[model.GPUID]gpu.Device{}, gone: map[model.GPUID]bool{}}
	maps.Copy(now.infos, was.infos)
	maps.Copy(now.devices, was.devices)
	for id := range was.infos {
		now.gone[id] = true
	}
	for _, d := range devices {
		id := model.GPUID(d.UUID)
		delete(now.gone, id)
		now.devices[id] = d
		now.infos[id] = model.GPUInfo{
			ID: id, Index: d.Index, Node: d.Node, Model: d.Model, Capacity: d.Capacity, Boot: cmp.Or(d.Boot, g.boot),
			MIG: d.Parent != "", Link: d.Link, Socket: d.Socket,
		}
	}
	for _, d := range now.infos {
		if now.least == 0 || d.Capacity < now.least {
			now.least = d.Capacity
		}
		now.most = max(now.most, d.Capacity)
	}
	g.now.Store(now)
	return nil
}

// Follow lists the GPUs again when the source says that they have changed, until ctx ends.
// It then calls changed.
func (g *GPUs) Follow(ctx context.Context, changed func()) {
	source, ok := g.source.(gpu.Coming)
	if !ok {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-source.News():
		}
		if err := g.find(ctx); err != nil {
			g.log.Error().Err(err).Msg("the GPUs cannot be listed; those of before stay")
			continue
		}
		changed()
	}
}
