package gpushare

import (
	"slices"
	"testing"

	"carma/containers"
	"carma/estimator/servers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/record"
)

// TestEstimate checks that a program's share of the smallest GPU is estimated, and that a share
// that leaves less than the headroom gets whole GPUs.
func TestEstimate(t *testing.T) {
	gpus := GPUs{Least: 20 * units.GiB, Most: 40 * units.GiB, Headroom: units.GiB}
	rec := &record.Record{Takes: &servers.Found{Share: 0.5}}
	if e, ok := gpus.Estimate(rec); !ok || e.Memory != 10*units.GiB || e.WholeGPU || e.Share != 500_000 {
		t.Errorf("half: %+v, %v", e, ok)
	}
	rec.Takes.Share = 0.99
	if e, ok := gpus.Estimate(rec); !ok || !e.WholeGPU {
		t.Errorf("nearly all: %+v, %v", e, ok)
	}
	rec.Submit.Mem = 1
	if _, ok := gpus.Estimate(rec); ok {
		t.Error("a task with declared memory is estimated by its share")
	}
}

// TestSet checks that a program is limited to the smallest grant as a share of the largest GPU,
// and that a variable of the user stays.
func TestSet(t *testing.T) {
	grants := []model.Grant{{GPU: "a", Memory: 12 * units.GiB}, {GPU: "b", Memory: 10 * units.GiB}}
	capacity := func(id model.GPUID) units.Bytes {
		return map[model.GPUID]units.Bytes{"a": 20 * units.GiB, "b": 40 * units.GiB}[id]
	}
	rec := &record.Record{Submit: api.Submit{Mem: 1}, Takes: &servers.Found{Flag: "--share"}}
	spec := containers.Spec{Command: []string{"serve"}}
	if Set(&spec, rec, grants, capacity); !slices.Equal(spec.Command, []string{"serve", "--share", "0.25"}) {
		t.Errorf("%q", spec.Command)
	}
	rec.Takes = &servers.Found{Variable: "FRACTION"}
	for _, env := range [][]string{nil, {"FRACTION=1"}} {
		spec := containers.Spec{Env: env}
		want := []string{"FRACTION=0.25"}
		if env != nil {
			want = env
		}
		if Set(&spec, rec, grants, capacity); !slices.Equal(spec.Env, want) {
			t.Errorf("%q, want %q", spec.Env, want)
		}
	}
	spec = containers.Spec{}
	if Set(&spec, rec, nil, capacity); len(spec.Env) > 0 {
		t.Errorf("without a GPU: %q", spec.Env)
	}
}
