package step_test

import (
	"testing"

	"carma/configs/models"
	"carma/estimator/networks/zoo"
)

// TestReserve: the two sizes of cuDNN's reserve that are known (pytorch/pytorch issue
// 2895). Both are of 4 layers of 320, and 25,000 samples x steps.
func TestReserve(t *testing.T) {
	for kind, want := range map[string]int64{"lstm": 736_000_000, "gru": 864_000_000} {
		cell := models.Cell{Kind: kind, Hidden: 320, Layers: 4}
		if n, masks := cell.Reserve(25_000 * 320); 4*n+masks != want {
			t.Errorf("%s: %d bytes, want %d", kind, 4*n+masks, want)
		}
		c, err := zoo.Build(kind+":features=123,hidden=320,layers=4,classes=10", models.Overrides{Sequence: 1000, Batch: 25})
		if err != nil {
			t.Fatal(err)
		}
		// A head of 10 classes makes the parameters of the report.
		if params := map[string]int64{"lstm": 3038090, "gru": 2279370}[kind]; c.Params() != params {
			t.Errorf("%s has %d parameters, want %d", kind, c.Params(), params)
		}
		whole := simulated(t, c)
		withoutReserve(c)
		if more := whole - simulated(t, c); more < want || more > want+want/50 {
			t.Errorf("%s: the step has %d bytes more, want the reserve of %d", kind, more, want)
		}
	}
}
