package machine

import (
	"strings"

	"carma/mapper/model"
	"carma/runner/api"
)

// View returns the API form of the machine's memory and processors. name returns the name
// of a task, owner the name of the owner of a suite.
func View(h model.Host, name func(model.TaskID) string, owner func(suite string) string) *api.Host {
	out := &api.Host{
		Total: int64(h.Total), Memory: int64(h.Memory), Booked: int64(h.Booked), Available: int64(h.Available),
		CPUs: Processors(h.CPUs), CPUsBooked: Processors(h.CPUsBooked), Tasks: []api.HostMember{},
	}
	for _, o := range h.Helpers {
		_, suite, _ := strings.Cut(o.Suite, "/")
		out.Helpers = append(out.Helpers, api.HostHelpers{Suite: suite, User: owner(o.Suite), Memory: int64(o.Memory), Used: int64(o.Used), CPUs: Processors(o.CPUs)})
	}
	for _, p := range h.Residents {
		out.Used += int64(p.Used)
		out.Away += int64(p.SuspendedMemory)
		out.Tasks = append(out.Tasks, api.HostMember{Task: int64(p.Task), Name: name(p.Task), Memory: int64(p.Memory), Away: int64(p.SuspendedMemory), Used: int64(p.Used), CPUs: Processors(p.CPUs)})
	}
	return out
}

// Processors converts thousandths to a number of processors.
func Processors(milli int64) float64 { return float64(milli) / 1000 }

// ViewShare returns the API form of the host resources allocated to an attempt.
func ViewShare(a *model.Attempt) api.HostShare {
	return api.HostShare{
		Memory: int64(a.Host.Memory), Limit: int64(a.Host.Limit), CPUs: Processors(a.Host.CPUs), Weight: Processors(a.Host.Weight), Peak: int64(a.HostPeak),
	}
}
