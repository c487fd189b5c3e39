package monitor

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// TestToldSample checks that the mapper gets the GPUs that differ from its last sample, GPUs
// that are new or have returned, and from time to time all GPUs.
func TestToldSample(t *testing.T) {
	var l sampleDelta
	at := units.Instant(1)
	gpu := func(id model.GPUID, used units.Bytes) model.GPUSample {
		return model.GPUSample{ID: id, Used: used, Tasks: []model.TaskUse{{Task: 1, Used: used}}}
	}
	look := func(what string, taken bool, gpus []model.GPUSample, hosts []model.HostSample, want ...model.GPUID) {
		t.Helper()
		at = at.Add(time.Second)
		ev := model.Sampled{At: at, GPUs: gpus, Hosts: hosts}
		news, differs := l.changed(ev)
		var ids []model.GPUID
		for _, g := range news.GPUs {
			ids = append(ids, g.ID)
		}
		if !slices.Equal(ids, want) || differs != (len(want) > 0 || news.Hosts != nil) {
			t.Errorf("%s: told of %v (%v), want %v", what, ids, differs, want)
		}
		if differs && taken {
			l.sent(news, ev)
		}
	}
	a, b := gpu("a", 1), gpu("b", 1)
	all := []model.GPUSample{a, b}
	look("the first", true, all, nil, "a", "b")
	look("the same", true, all, nil)
	b = gpu("b", 2)
	look("one differs, and the loop had no time", false, []model.GPUSample{a, b}, nil, "b")
	look("it still does", true, []model.GPUSample{a, b}, nil, "b")
	look("the same again", true, []model.GPUSample{a, b}, nil)
	look("one is gone", true, []model.GPUSample{b}, nil)
	look("it comes again", true, []model.GPUSample{a, b}, nil, "a")
	hosts := []model.HostSample{{Node: "n", Available: 5}}
	look("a machine has less memory", true, []model.GPUSample{a, b}, hosts)
	look("it has still", true, []model.GPUSample{a, b}, hosts)
	at = at.Add(wholeEvery)
	look("a long time later, the same", true, []model.GPUSample{a, b}, hosts)
	b = gpu("b", 3)
	look("and one differs", true, []model.GPUSample{a, b}, hosts, "a", "b")
	b = gpu("b", 4)
	look("and again", true, []model.GPUSample{a, b}, hosts, "b")
}

// equalSamples reports whether two samples are equal for the mapper.
func equalSamples(a, b model.Sampled) bool {
	return len(a.GPUs) == len(b.GPUs) && equalHostSamples(a.Hosts, b.Hosts) &&
		slices.EqualFunc(a.GPUs, b.GPUs, func(x, y model.GPUSample) bool { return equalGPUSample(&x, &y) })
}

// TestSampleDeltaHasEveryField changes each field of a sample, one after the other: each change
// must be reported to the mapper.
func TestSampleDeltaHasEveryField(t *testing.T) {
	at := units.Instant(1).Add(time.Hour)
	whole := func() model.Sampled {
		ev := model.Sampled{At: at}
		fill(reflect.ValueOf(&ev.GPUs).Elem())
		fill(reflect.ValueOf(&ev.Hosts).Elem())
		return ev
	}
	paths := map[string]bool{}
	for n := 0; ; n++ {
		before, after := whole(), whole()
		left := n
		var path string
		if path = alter(reflect.ValueOf(&after.GPUs).Elem(), "GPUs", &left); path == "" {
			path = alter(reflect.ValueOf(&after.Hosts).Elem(), "Hosts", &left)
		}
		if path == "" {
			break
		}
		paths[path] = true
		var l sampleDelta
		l.sent(before, before)
		if _, differs := l.changed(after); !differs {
			t.Errorf("%s has changed, and the mapper is not told", path)
		}
		l = sampleDelta{}
		l.sent(before, before)
		if _, differs := l.changed(whole()); differs {
			t.Error("an equal sample is told again")
		}
	}
	if want := reflect.TypeFor[model.GPUSample]().NumField() + reflect.TypeFor[model.HostSample]().NumField(); len(paths) < want {
		t.Errorf("%d fields were changed, want %d or more", len(paths), want)
	}
}

// fill gives every list below a value one element, and every other field a value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint64:
		v.SetUint(1)
	default:
		panic("fill: " + v.Type().String())
	}
}

// alter changes the value number *n below v, and returns its path, or "" if there are
// fewer.
func alter(v reflect.Value, path string, n *int) string {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if p := alter(v.Field(i), path+"."+v.Type().Field(i).Name, n); p != "" {
				return p
			}
		}
		return ""
	case reflect.Slice:
		return alter(v.Index(0), path, n)
	}
	if *n--; *n >= 0 {
		return ""
	}
	v.SetZero()
	return path
}
