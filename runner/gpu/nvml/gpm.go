//go:build cgo

package nvml

import (
	"math"
	"time"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// gpm measures a unit's activity between two samples of the GPU's performance
// monitoring.
type gpm struct {
	lib      lib.Interface
	card     lib.Device
	instance int
	previous lib.GpmSample
	current  lib.GpmSample
	taken    time.Time // time of previous, or zero if there is none
	read     lib.GpmMetricsGetType
	// The last result, for a caller that calls again too soon.
	activity
	valid bool
	// good contains the last possible figures, by metric, to replace impossible ones.
	good [3]figure
}

// figure is one metric's value and the time of its sample, or zero if there is none.
type figure struct {
	value float64
	at    time.Time
}

// gpmHold is the time for which a metric keeps its last possible value while the counters
// are impossible. A longer time is not a glitch.
const gpmHold = 10 * time.Second

// activity contains values from 0 to 1.
type activity struct{ smact, smocc, drama float64 }

// gpmLeast is the least time between two samples (NVML's documentation).
const gpmLeast = 100 * time.Millisecond

// newGPM prepares a unit for measuring, or returns nil if it cannot be measured.
func (s *Source) newGPM(u *unit) *gpm {
	for _, symbol := range []string{"nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMetricsGet"} {
		if !s.has(symbol) {
			return nil
		}
	}
	if u.instance >= 0 && !s.has("nvmlGpmMigSampleGet") {
		return nil
	}
	if support, ret := u.card.handle.GpmQueryDeviceSupport(); ret != lib.SUCCESS || support.IsSupportedDevice == 0 {
		return nil
	}
	g := &gpm{lib: s.lib, card: u.card.handle, instance: u.instance}
	for _, sample := range []*lib.GpmSample{&g.previous, &g.current} {
		var ret lib.Return
		if *sample, ret = s.lib.GpmSampleAlloc(); ret != lib.SUCCESS {
			*sample = nil
			g.free()
			return nil
		}
	}
	g.take(g.previous, s.opt.Now())
	return g
}

func (g *gpm) free() {
	if g == nil {
		return
	}
	for _, sample := range []lib.GpmSample{g.previous, g.current} {
		if sample != nil {
			sample.Free()
		}
	}
	g.previous, g.current, g.taken, g.valid, g.good = nil, nil, time.Time{}, false, [3]figure{}
}

// take takes a sample and reports whether it could.
func (g *gpm) take(sample lib.GpmSample, now time.Time) bool {
	var ret lib.Return
	if g.instance >= 0 {
		ret = g.card.GpmMigSampleGet(g.instance, sample)
	} else {
		ret = g.card.GpmSampleGet(sample)
	}
	if ret != lib.SUCCESS {
		g.taken, g.valid = time.Time{}, false
		return false
	}
	g.taken = now
	return true
}

// measure returns the activity since the last call.
func (g *gpm) measure(now time.Time) (activity, bool) {
	if g == nil || g.previous == nil {
		return activity{}, false
	}
	if g.taken.IsZero() {
		g.take(g.previous, now)
		return activity{}, false
	}
	if gap := now.Sub(g.taken); gap >= 0 && gap < gpmLeast {
		return g.activity, g.valid
	}
	if !g.take(g.current, now) {
		return activity{}, false
	}
	g.activity, g.valid = g.between()
	g.previous, g.current = g.current, g.previous
	return g.activity, g.valid
}

// between returns the activity between the two samples. The library returns percent. A
// metric with an impossible value keeps its last value, because the others are still
// valid.
func (g *gpm) between() (activity, bool) {
	wanted := []lib.GpmMetricId{lib.GPM_METRIC_SM_UTIL, lib.GPM_METRIC_SM_OCCUPANCY, lib.GPM_METRIC_DRAM_BW_UTIL}
	g.read = lib.GpmMetricsGetType{NumMetrics: uint32(len(wanted)), Sample1: g.previous, Sample2: g.current}
	for i, id := range wanted {
		g.read.Metrics[i].MetricId = uint32(id)
	}
	if ret := g.lib.GpmMetricsGet(&g.read); ret != lib.SUCCESS {
		return activity{}, false
	}
	var got [3]float64
	for i := range wanted {
		v, ok := share(g.read.Metrics[i].Value / 100)
		switch last := g.good[i]; {
		case ok && lib.Return(g.read.Metrics[i].NvmlReturn) == lib.SUCCESS:
			g.good[i] = figure{v, g.taken}
		case last.at.IsZero() || g.taken.Sub(last.at) > gpmHold:
			return activity{}, false
		default:
			v = last.value
		}
		got[i] = v
	}
	return activity{got[0], got[1], got[2]}, true
}

// share checks a part of a whole and limits it to 1. Counters that are read one after the
// other may give a little more than 1.
func share(v float64) (float64, bool) {
	if math.IsNaN(v) || v < 0 || v > 1.05 {
		return 0, false
	}
	return min(1, v), true
}
