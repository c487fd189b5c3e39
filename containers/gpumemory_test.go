package containers

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"carma/containers/endtext"
)

const gibibyte = int64(1) << 30

func TestMemoryState(t *testing.T) {
	for name, row := range map[string]struct {
		m       GPUMemory
		request int64
		want    MemoryState
	}{
		"nothing measured":                {GPUMemory{}, 0, MemoryUnknown},
		"one sample":                      {GPUMemory{Readings: 1, Seen: true, AtError: true, Peak: gibibyte, Grant: 8 * gibibyte}, 0, MemoryUnknown},
		"peak between samples":            {GPUMemory{Readings: 60, Seen: true, Peak: gibibyte, Grant: 8 * gibibyte}, 0, MemoryUnknown},
		"sample at the error":             {GPUMemory{Readings: 60, Seen: true, AtError: true, Peak: gibibyte, Grant: 8 * gibibyte}, 0, MemoryBelow},
		"the driver's own record":         {GPUMemory{Readings: 60, Seen: true, Exact: true, Peak: gibibyte, Grant: 8 * gibibyte}, 0, MemoryBelow},
		"a request above the grant":       {GPUMemory{Readings: 60, Seen: true, AtError: true, Peak: gibibyte, Grant: 8 * gibibyte}, 7 * gibibyte, MemoryNear},
		"a request within the grant":      {GPUMemory{Readings: 60, Seen: true, AtError: true, Peak: gibibyte, Grant: 8 * gibibyte}, 4 * gibibyte, MemoryUnknown},
		"at the grant":                    {GPUMemory{Readings: 60, Seen: true, Peak: 8 * gibibyte, Grant: 8 * gibibyte}, 0, MemoryNear},
		"at the driver's limit":           {GPUMemory{Readings: 60, Seen: true, Peak: 8 * gibibyte, Grant: 20 * gibibyte, Limit: 8 * gibibyte}, 0, MemoryNear},
		"card full":                       {GPUMemory{Readings: 60, Seen: true, AtError: true, CardFull: true, Peak: gibibyte, Grant: 8 * gibibyte}, 0, MemoryNear},
		"untouched":                       {GPUMemory{Readings: 6, Span: 6 * time.Second, Grant: 8 * gibibyte}, 0, MemoryUntouched},
		"untouched, a short time":         {GPUMemory{Readings: 50, Span: 2 * time.Second, Grant: 8 * gibibyte}, 0, MemoryUnknown},
		"untouched, and the card is full": {GPUMemory{Readings: 6, Span: 6 * time.Second, CardFull: true, Grant: 8 * gibibyte}, 0, MemoryNear},
	} {
		if got := row.m.State(row.request); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

// TestWitnesses checks that neither a text nor an exit code alone confirms a GPU OOM, that a
// measurement takes precedence over both, and that a measurement alone is not an OOM.
func TestWitnesses(t *testing.T) {
	texts := []string{"step 10: loss 0.3"}
	for _, r := range endtext.Rules() {
		texts = append(texts, r.Yes, r.No)
	}
	for _, s := range samples(t) {
		texts = append(texts, s.lines...)
	}
	rapid.Check(t, func(t *rapid.T) {
		tail := rapid.SliceOfN(rapid.SampledFrom(texts), 0, 6).Draw(t, "tail")
		facts := Facts{OOMExits: rapid.SampledFrom([][]int{nil, {77}}).Draw(t, "exits"), OOMTexts: rapid.SampledFrom([][]string{nil, {"loss"}}).Draw(t, "texts")}
		exit := Exit{Code: rapid.SampledFrom([]int{1, 77, 134, 137}).Draw(t, "code"), Started: time.Unix(1, 0), Finished: time.Unix(9, 0)}
		if v := Classify(exit, tail, facts); v.Confirmed {
			t.Fatalf("%q alone is confirmed: %+v", tail, v)
		}
		for _, m := range []GPUMemory{
			{Readings: 60, Span: time.Minute, Grant: 80 * gibibyte},
			{Readings: 60, Span: time.Minute, Seen: true, Exact: true, Peak: 1, Grant: 1 << 60},
		} {
			facts.Memory = m
			if v := Classify(exit, tail, facts); v.Class == ClassGPUOOM || v.Class == ClassSuspectedOOM {
				t.Fatalf("%q outranks %+v: %+v", tail, m, v)
			}
		}
		facts.Memory, facts.OOMExits = GPUMemory{Readings: 60, Span: time.Minute, Seen: true, CardFull: true, Peak: 8 * gibibyte, Grant: 8 * gibibyte}, nil
		if v := Classify(exit, []string{"step 10"}, Facts{Memory: facts.Memory}); v.Class == ClassGPUOOM || v.Class == ClassSuspectedOOM {
			t.Fatalf("a measurement alone: %+v", v)
		}
	})
}
