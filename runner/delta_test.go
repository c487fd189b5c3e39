package runner

import (
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper"
)

// TestToldSample: the mapper is told of the GPUs that show something else than what it was
// told, of those that are new or come again, and sometimes of all.
func TestToldSample(t *testing.T) {
	var l toldSample
	at := units.Instant(1)
	gpu := func(id mapper.GPUID, used units.Bytes) mapper.GPUSample {
		return mapper.GPUSample{ID: id, Used: used, Tasks: []mapper.TaskUse{{Task: 1, Used: used}}}
	}
	look := func(what string, taken bool, gpus []mapper.GPUSample, hosts []mapper.HostSample, want ...mapper.GPUID) {
		t.Helper()
		at = at.Add(time.Second)
		ev := mapper.Sampled{At: at, GPUs: gpus, Hosts: hosts}
		news, differs := l.news(ev)
		var ids []mapper.GPUID
		for _, g := range news.GPUs {
			ids = append(ids, g.ID)
		}
		if !slices.Equal(ids, want) || differs != (len(want) > 0 || news.Hosts != nil) {
			t.Errorf("%s: told of %v (%v), want %v", what, ids, differs, want)
		}
		if differs && taken {
			l.took(news, ev)
		}
	}
	a, b := gpu("a", 1), gpu("b", 1)
	all := []mapper.GPUSample{a, b}
	look("the first", true, all, nil, "a", "b")
	look("the same", true, all, nil)
	b = gpu("b", 2)
	look("one differs, and the loop had no time", false, []mapper.GPUSample{a, b}, nil, "b")
	look("it still does", true, []mapper.GPUSample{a, b}, nil, "b")
	look("the same again", true, []mapper.GPUSample{a, b}, nil)
	look("one is gone", true, []mapper.GPUSample{b}, nil)
	look("it comes again", true, []mapper.GPUSample{a, b}, nil, "a")
	hosts := []mapper.HostSample{{Node: "n", Available: 5}}
	look("a machine has less memory", true, []mapper.GPUSample{a, b}, hosts)
	look("it has still", true, []mapper.GPUSample{a, b}, hosts)
	at = at.Add(wholeEvery)
	look("a long time later, the same", true, []mapper.GPUSample{a, b}, hosts)
	b = gpu("b", 3)
	look("and one differs", true, []mapper.GPUSample{a, b}, hosts, "a", "b")
	b = gpu("b", 4)
	look("and again", true, []mapper.GPUSample{a, b}, hosts, "b")
}

// alike reports whether two samples tell the mapper the same.
func alike(a, b mapper.Sampled) bool {
	return len(a.GPUs) == len(b.GPUs) && alikeHosts(a.Hosts, b.Hosts) &&
		slices.EqualFunc(a.GPUs, b.GPUs, func(x, y mapper.GPUSample) bool { return alikeGPU(&x, &y) })
}
