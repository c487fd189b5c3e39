package runner

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper"
)

// wholeEvery is after how long a sample that differs is told of all GPUs, not only of those
// that do.
const wholeEvery = 30 * time.Second

// toldSample is what the mapper was told last of each GPU. It is told of those that differ:
// each sample goes into the journal, and a cluster has thousands of GPUs, most of which show
// the same as a second ago.
type toldSample struct {
	gpus  map[mapper.GPUID]mapper.GPUSample
	hosts []mapper.HostSample
	whole units.Instant // when all were told; 0: never
}

// news is the part of a sample that differs from what was told; false: nothing does.
func (l *toldSample) news(ev mapper.Sampled) (mapper.Sampled, bool) {
	out, still := mapper.Sampled{At: ev.At}, 0
	for i := range ev.GPUs {
		was, known := l.gpus[ev.GPUs[i].ID]
		if known {
			still++
		}
		if !known || !equalGPUSample(&was, &ev.GPUs[i]) {
			out.GPUs = append(out.GPUs, ev.GPUs[i])
		}
	}
	if still < len(l.gpus) { // one that comes again is told of again
		there := make(map[mapper.GPUID]bool, len(ev.GPUs))
		for i := range ev.GPUs {
			there[ev.GPUs[i].ID] = true
		}
		maps.DeleteFunc(l.gpus, func(id mapper.GPUID, _ mapper.GPUSample) bool { return !there[id] })
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

// took notes that the mapper was told news of a sample.
func (l *toldSample) took(news, ev mapper.Sampled) {
	if len(news.GPUs) == len(ev.GPUs) {
		l.gpus, l.whole = make(map[mapper.GPUID]mapper.GPUSample, len(ev.GPUs)), ev.At
	}
	for _, g := range news.GPUs {
		l.gpus[g.ID] = g
	}
	l.hosts = ev.Hosts
}

// equalGPUSample reports whether two samples of a GPU have the same values, in every field.
func equalGPUSample(x, y *mapper.GPUSample) bool { return reflect.DeepEqual(x, y) }

// equalHostSamples reports whether the samples of all hosts have the same values.
func equalHostSamples(a, b []mapper.HostSample) bool {
	return slices.EqualFunc(a, b, func(x, y mapper.HostSample) bool { return reflect.DeepEqual(&x, &y) })
}
