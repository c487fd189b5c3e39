package booking

import (
	"errors"
	"sync"
	"testing"

	"carma/configs/models"
	"carma/estimator"
	environments "carma/estimator/environment"
	"carma/internal/units"
)

// TestMemo: an equal query is asked once; queries that differ in any part are different.
func TestMemo(t *testing.T) {
	var m memo
	asked := 0
	ask := func(q estimator.Query) (estimator.Estimate, error) {
		asked++
		return estimator.Estimate{Memory: units.Bytes(asked)}, nil
	}
	q := estimator.Query{Model: "a", Batch: 4}
	first, _ := m.estimate(nil, q, ask)
	if again, _ := m.estimate(nil, q, ask); asked != 1 || again != first {
		t.Errorf("asked %d times", asked)
	}
	if _, _ = m.estimate(&environments.Environment{}, q, ask); asked != 2 {
		t.Error("an estimate for another environment is taken")
	}
	on := true
	for _, other := range []estimator.Query{
		{Model: "b", Batch: 4}, {Model: "a", Batch: 8}, {Model: "a", Batch: 4, GPUs: 2}, {Model: "a", Batch: 4, Described: []byte("{}")},
		{Model: "a", Batch: 4, Settings: models.Overrides{Sequence: 8}}, {Model: "a", Batch: 4, Settings: models.Overrides{Checkpointing: &on}},
		{Model: "a", Batch: 4, Runs: []estimator.Run{{Batch: 2, Peak: 1}}}, {Model: "a", Batch: 4, Read: "amp"}, {Model: "a", Batch: 4, Estimator: "x"},
	} {
		before := asked
		if _, _ = m.estimate(nil, other, ask); asked != before+1 {
			t.Errorf("%+v is taken for another", other)
		}
	}
	for i := range 2 * remembered {
		_, _ = m.estimate(nil, estimator.Query{Model: "a", Batch: 100 + i}, ask)
	}
	if len(m.by) != remembered || len(m.keys) != remembered {
		t.Errorf("%d are kept", len(m.by))
	}
	wrong := errors.New("wrong")
	for range 2 {
		if _, err := m.estimate(nil, estimator.Query{Model: "c"}, func(estimator.Query) (estimator.Estimate, error) { return estimator.Estimate{}, wrong }); err != wrong {
			t.Error(err)
		}
	}
}

func TestMemoAtOnce(t *testing.T) {
	var m memo
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 200 {
				batch := 1 + (i+j)%100
				e, err := m.estimate(nil, estimator.Query{Model: "a", Batch: batch}, func(q estimator.Query) (estimator.Estimate, error) {
					return estimator.Estimate{Memory: units.Bytes(q.Batch)}, nil
				})
				if err != nil || e.Memory != units.Bytes(batch) {
					t.Errorf("%d: %+v, %v", batch, e, err)
				}
			}
		})
	}
	all.Wait()
}
