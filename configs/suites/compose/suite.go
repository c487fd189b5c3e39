package compose

import (
	"slices"

	"carma/configs/taskfile"
	"carma/runner/api"
)

// Suite is a Compose file as tasks.
type Suite struct {
	// Name is the project's name, and that of the tasks' group.
	Name string
	// Services are in an order in which each comes after those that it waits for.
	Services []Service
	// Helpers are the services that run beside the tasks, in the same order.
	Helpers []Service
	// Warnings are about keys that are not honoured but harmless, one line each.
	Warnings []string
	// around is what helpers and tasks have in common; see [Suite.Around].
	around api.Suite
}

// Around is what the suite has beside its tasks; nil: nothing.
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

// join notes what the tasks of a service have of the suite.
func (s *Suite) join(service string, j api.Joined) {
	if s.around.Tasks == nil {
		s.around.Tasks = map[string]api.Joined{}
	}
	s.around.Tasks[service] = j
}

// await notes what the tasks wait for.
func (s *Suite) await(w api.HelperWait) {
	if !slices.Contains(s.around.Waits, w) {
		s.around.Waits = append(s.around.Waits, w)
	}
}

// Service is one service as tasks, or as a helper.
type Service struct {
	Name string
	// Task is its request; its Line is the service's first line in the file.
	taskfile.Task
	// Replicas is how many tasks it has.
	Replicas int
	// AllGPUs: it asks for all GPUs of the machine, however many there are.
	AllGPUs bool
	// Helper is what it is beside its Submit, if it is a helper; nil: it is a task.
	Helper *api.Helper
	// Build is how its image is built; nil: it is not built.
	Build *Build
	// Create are missing folders of the host that it mounts. Like Compose, carma
	// makes them.
	Create []string
}

// Build is how an image is built from a folder.
type Build struct {
	Context, Dockerfile, Inline, Target, Network string
	Args                                         map[string]*string
	Labels                                       map[string]string
	Tags                                         []string
	ShmSize                                      int64 // bytes
	NoCache, Pull                                bool
	// Always: build even if the image exists.
	Always bool
}

// File is a Compose file. Path is for errors.
type File struct {
	Path    string
	Content []byte
}

// Options are settings from outside the file.
type Options struct {
	Name     string   // name of the project; empty: the file's, or its folder's
	EnvFiles []string // instead of .env in the file's folder
	Profiles []string // active profiles
	Environ  []string // KEY=value
	Folder   string   // base of relative paths
	// Over are further files, merged over the first as Compose does, in order.
	Over []File
	// UID and GID are those of the submitter. Tasks run as these, except for
	// root.
	UID, GID int
}
