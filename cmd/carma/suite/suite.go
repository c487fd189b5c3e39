package suite

import (
	"carma/configs/taskfile"
)

// Suite is what a Compose file comes to.
type Suite struct {
	// Name is the project's; the tasks' group is called so.
	Name string
	// Services are in an order in which each comes after those it waits for.
	Services []Service
	// Warnings are what is not honoured and harmless, one line each.
	Warnings []string
}

// Service is a service as tasks.
type Service struct {
	Name string
	// Task is what it asks for; Line is where it begins in the file.
	taskfile.Task
	// Replicas is how many of them there are.
	Replicas int
	// AllGPUs: it asks for all GPUs of the machine, how many there are.
	AllGPUs bool
	// Build is how its image is made; nil: it is not.
	Build *Build
	// Create are folders of the host that it mounts and that do not exist;
	// Compose makes them.
	Create []string
}

// Build is how an image is made of a folder.
type Build struct {
	Context, Dockerfile, Inline, Target, Network string
	Args                                         map[string]*string
	Labels                                       map[string]string
	Tags                                         []string
	ShmSize                                      int64 // bytes
	NoCache, Pull                                bool
	// Always: also when the image exists.
	Always bool
}

// Options are what is said beside the file.
type Options struct {
	Name     string   // of the project; empty: the file's, else its folder's
	EnvFiles []string // in place of .env in the file's folder
	Profiles []string // those that are active
	Environ  []string // KEY=value
	Folder   string   // where relative paths begin
	// UID and GID are who submits: tasks of others than root run as these.
	UID, GID int
}
