package monitor

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// wholeEvery is the time after which the next changed sample reports all GPUs instead of
// only the changed ones.
const wholeEvery = 30 * time.Second

// sampleDelta holds the last sample of each GPU that the mapper was given. The mapper gets only
// the GPUs that changed, because each sample goes into the journal, and most of a cluster's
// thousands of GPUs have not changed since the last second.
type sampleDelta struct {
	gpus  map[model.GPUID]model.GPUSample
	hosts []model.HostSample
	whole units.Instant // time of the last sample of all GPUs, or 0
}

// changed returns the part of a sample that differs from the last one reported, or false if
// nothing does.
func (l *sampleDelta) changed(ev model.Sampled) (model.Sampled, bool) {
	out, still := model.Sampled{At: ev.At}, 0
	for i := range ev.GPUs {
		was, known := l.gpus[ev.GPUs[i].ID]
		if known {
			still++
		}
		if !known || !equalGPUSample(&was, &ev.GPUs[i]) {
			out.GPUs = append(out.GPUs, ev.GPUs[i])
		}
	}
	if still < len(l.gpus) { // a GPU that returns is reported again
		there := make(map[model.GPUID]bool, len(ev.GPUs))
		for i := range ev.GPUs {
			there[ev.GPUs[i].ID] = true
		}
		maps.DeleteFunc(l.gpus, func(id model.GPUID, _ model.GPUSample) bool { return !there[id] })
	}
	if !equalHostSamples(l.hosts, ev.Hosts) {
		out.Hosts = ev.Hosts
	}
	if len(out.GPUs) == 0 && out.Hosts == nil {
		return out, false
	}
	if l.whole == 0 || ev.At.Sub(l.whole) >= wholeEvery || ev.At < l.whole {
		return ev, true
	}
	return out, true
}

// sent records that the mapper was given news, the changed part of the sample ev.
func (l *sampleDelta) sent(news, ev model.Sampled) {
	if len(news.GPUs) == len(ev.GPUs) {
		l.gpus, l.whole = make(map[model.GPUID]model.GPUSample, len(ev.GPUs)), ev.At
	}
	for _, g := range news.GPUs {
		l.gpus[g.ID] = g
	}
	l.hosts = ev.Hosts
}

// equalGPUSample reports whether two samples of a GPU have the same values, in every field.
func equalGPUSample(x, y *model.GPUSample) bool { return reflect.DeepEqual(x, y) }

// equalHostSamples reports whether the samples of all hosts have the same values.
func equalHostSamples(a, b []model.HostSample) bool {
	return slices.EqualFunc(a, b, func(x, y model.HostSample) bool { return reflect.DeepEqual(&x, &y) })
}
