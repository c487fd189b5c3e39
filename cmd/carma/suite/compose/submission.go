package compose

import (
	"fmt"

	"carma/runner/api"
)

// Submission returns the suite as one request, with a task for each replica of a service.
// It has no tasks if the suite has only helpers. It fails if the suite is empty or has too
// many tasks.
func (s *Suite) Submission() (api.Submission, error) {
	request := api.Submission{Group: s.Name}
	for i := range s.Services {
		v := &s.Services[i]
		tasks, err := v.Expand()
		if err != nil {
			return request, err
		}
		for range v.Replicas {
			request.Tasks = append(request.Tasks, tasks...)
		}
		if len(request.Tasks) > api.MaxTasks {
			return request, fmt.Errorf("more than %d tasks, the most of one submission", api.MaxTasks)
		}
	}
	if len(request.Tasks) == 0 && len(s.Helpers) == 0 {
		return request, fmt.Errorf("suite %s has no tasks; all services have 0 replicas", s.Name)
	}
	return request, nil
}
