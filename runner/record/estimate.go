package record

import (
	"fmt"
	"strings"

	"carma/mapper/model"
	"carma/runner/api"
)

// EstimateView returns an estimate as users see it.
func EstimateView(e model.Estimate, detail string) api.Estimate {
	return api.Estimate{
		Memory: int64(e.Memory), Point: int64(e.Point), Plain: int64(e.Plain.Point), WholeGPU: e.WholeGPU, Method: string(e.Method), Detail: detail,
	}
}

// EstimateDetail says where an estimate comes from. asked is the estimator's sentence at
// submission. Earlier runs may have overruled it since. exclusive is set if the task
// requested exclusive GPUs, so that words about sharing are left out.
func EstimateDetail(e model.Estimate, asked string, exclusive bool) string {
	if found, _, shares := strings.Cut(asked, "; --mem"); shares && exclusive {
		asked = found + "; it asked for its GPUs alone"
	}
	switch {
	case e.Method != model.FromHistory:
		return asked
	case e.WholeGPU:
		return "earlier runs of the same image and command used more than tasks that share can have, so it gets whole GPUs; when it was submitted: " + asked
	}
	return fmt.Sprintf("%s booked, a little above what earlier runs of the same image and command used; when it was submitted: %s", e.Memory, asked)
}
