package compose

import (
	"slices"

	"carma/cmd/carma/taskfile"
	"carma/runner/api"
)

// Suite is a Compose file translated to tasks and helpers.
type Suite struct {
	// Name is the project's name, and the name of the tasks' group.
	Name string
	// Services are sorted so that each comes after the services that it waits for.
	Services []Service
	// Helpers are the services that run beside the tasks, in the same order.
	Helpers []Service
	// Warnings are about keys that are not honoured but harmless, one line each.
	Warnings []string
	// around contains the settings that helpers and tasks share; see [Suite.Around].
	around api.Suite
}

// Around returns the suite's content other than tasks, or nil if there is none.
func (s *Suite) Around() *api.Suite {
	all := s.around
	for i := range s.Helpers {
		h := *s.Helpers[i].Helper
		h.Container = s.Helpers[i].Submit
		h.Container.Part = ""
		all.Helpers = append(all.Helpers, h)
	}
	if len(all.Helpers)+len(all.Networks)+len(all.Volumes)+len(all.Tasks) == 0 {
		return nil
	}
	return &all
}

// join stores the suite's settings for the tasks of a service.
func (s *Suite) join(service string, j api.Joined) {
	if s.around.Tasks == nil {
		s.around.Tasks = map[string]api.Joined{}
	}
	s.around.Tasks[service] = j
}

// await stores a condition that the tasks wait for.
func (s *Suite) await(w api.HelperWait) {
	if !slices.Contains(s.around.Waits, w) {
		s.around.Waits = append(s.around.Waits, w)
	}
}

// Service is a service that becomes tasks or a helper.
type Service struct {
	Name string
	// Task is the request for the service. Task.Line is the service's first line in the
	// file.
	taskfile.Task
	// Replicas is the number of the service's tasks or containers.
	Replicas int
	// AllGPUs is set if the service requests all GPUs of the machine.
	AllGPUs bool
	// Helper contains the settings of a helper that Submit lacks, or is nil for a task.
	Helper *api.Helper
	// Build describes the build of the service's image, or is nil if the image is not built.
	Build *Build
	// Create lists missing host folders that the service mounts. Like Compose, carma creates
	// them.
	Create []string
}

// Build describes the build of an image from a folder.
type Build struct {
	Context, Dockerfile, Inline, Target, Network string
	Args                                         map[string]*string
	Labels                                       map[string]string
	Tags                                         []string
	ShmSize                                      int64 // bytes
	NoCache, Pull                                bool
	// Always is set if the image is built even if it exists.
	Always bool
}

// File is a Compose file. Path is used in errors.
type File struct {
	Path    string
	Content []byte
}

// Options are settings from outside the file.
type Options struct {
	Name     string   // name of the project, or empty for the name in the file or of the folder
	EnvFiles []string // replace .env in the file's folder
	Profiles []string // active profiles
	Environ  []string // KEY=value
	Folder   string   // base of relative paths
	// Over lists further files, merged over the first as in Compose, in order.
	Over []File
	// UID and GID are the submitter's. Tasks run as this user, except root's tasks.
	UID, GID int
}
