package mapper

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/predict"
	"carma/mapper/queue"

	"pgregory.net/rapid"
)

// TestResortOfAKind checks that moving the tasks of one kind gives the same order as
// sorting the whole queue.
func TestResortOfAKind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(DefaultsOf("carma"))
		for i := range rapid.IntRange(2, 4*queue.FewMoves).Draw(t, "tasks") {
			at := units.Instant(time.Duration(i) * time.Minute)
			r := model.Request{ID: model.TaskID(i + 1), Kind: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "kind"), Priority: rapid.SampledFrom([]model.Priority{model.Low, model.Normal}).Draw(t, "priority")}
			s.Step(model.TaskSubmitted{At: at, Request: r})
			s.Step(model.Estimated{At: at, Task: r.ID, Estimate: model.Estimate{Memory: units.GiB}})
		}
		kind := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "learned")
		s.learnKinds(&predict.KindHistory{Kind: kind, Peak: units.GiB, Alone: time.Duration(rapid.IntRange(1, 300).Draw(t, "minutes")) * time.Minute})
		plain := s.Clone()
		plain.queue.Resort(func(*model.Task) bool { return true })
		s.queue.ResortKind(kind)
		if got, want := inQueue(s), inQueue(plain); !slices.Equal(got, want) {
			t.Fatalf("order %v, by sorting %v", got, want)
		}
	})
}

// inQueue returns the order of the waiting tasks.
func inQueue(s *State) (ids []model.TaskID) {
	for _, t := range s.queue.WaitingList() {
		ids = append(ids, t.ID)
	}
	return ids
}

// TestGPUsOfKinds checks that gpusOf finds the same GPUs as a search of all GPUs.
func TestGPUsOfKinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opt := DefaultsOf("magm")
		opt.SMACTCap = 0
		s := New(opt)
		var all []model.GPUInfo
		for i := range 6 {
			all = append(all, model.GPUInfo{ID: model.GPUID(fmt.Sprint("g", i)), Node: fmt.Sprint(i / 3), Index: i % 3, Capacity: 16 * units.GiB})
		}
		s.Step(model.GPUsFound{At: 1, GPUs: all})
		kinds := []string{"", "a", "b", "c"}
		for i := range rapid.IntRange(1, 20).Draw(t, "tasks") {
			r := model.Request{ID: model.TaskID(i + 1), Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), GPUs: rapid.IntRange(1, 2).Draw(t, "gpus")}
			s.Step(model.TaskSubmitted{At: 2, Request: r})
			s.Step(model.Estimated{At: 2, Task: r.ID, Estimate: model.Estimate{Memory: 4 * units.GiB}})
		}
		asked := rapid.SliceOfNDistinct(rapid.SampledFrom(kinds[1:]), 1, 3, rapid.ID).Draw(t, "asked")
		var want []*model.GPU
		for _, g := range s.GPUList() {
			if slices.ContainsFunc(g.Residents, func(r model.Resident) bool { return slices.Contains(asked, s.TaskByID(r.Task).Kind) }) {
				want = append(want, g)
			}
		}
		if got := s.GpusOf(asked...); !slices.Equal(got, want) {
			t.Fatalf("%d GPUs have tasks of %v, found are %d", len(want), asked, len(got))
		}
	})
}
