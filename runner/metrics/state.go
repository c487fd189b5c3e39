package metrics

import "time"

// State is the data of one page. Memory is in bytes, energy in joules.
type State struct {
	Now      time.Time // the daemon's time; on a simulated server it differs from the clock
	GPUs     []GPU
	Tasks    []Task // tasks with GPUs
	Queue    []Queue
	Held     int // unfinished tasks in no queue: held, or waiting for others
	Away     int // suspended tasks
	Users    []User
	IdleJ    float64 // energy of GPUs without tasks, in joules
	EngineUp bool
	Ready    bool // tasks that are submitted now can be stored and started
	Paused   bool
	Draining bool
	Troubles map[string]int // problems that keep tasks from starting, by scope
	Journal  Journal
}

// GPU is one GPU.
type GPU struct {
	Index                          int
	UUID, Model, Sharing           string
	Total, Reserved, Used, Foreign int64
	Headroom                       int64
	SMACT, SMOCC, DRAMA            float64
	Known, Coarse                  bool // Known: the activity is known; Coarse: it is an upper bound
	PowerW, EnergyJ, TemperatureC  float64
	ECCErrors                      uint64
	Fault, Drained, HeldFor        bool
	Tasks, Suspended               int
}

// Task is a task that has GPUs.
type Task struct {
	ID         int64
	Name, User string
	Phase      string
	Estimate   int64 // on each GPU, or 0 if it gets whole GPUs
	Attempts   int
	Progress   float64 // 0 to 1, or negative if unknown
	Slowdown   float64 // duration relative to the task alone on the GPU, or 0 without neighbours
	Started    time.Time
	Idle       bool
	EnergyJ    float64
	On         []Place
}

// Place is a task's share of one GPU.
type Place struct {
	UUID              string
	Grant, Used, Peak int64
}

// Queue counts the waiting tasks of one priority and one reason.
type Queue struct {
	Priority, Reason string
	Tasks            int
	// Oldest is the longest waiting time of these tasks.
	Oldest time.Duration
}

// User is the usage of one user.
type User struct {
	Name             string
	Running, Waiting int
	GPUs             int
	Memory           int64
	GPUSeconds       float64 // since counting began, restarts included
	EnergyJ          float64 // likewise, in joules
	Usage            float64 // GPU-seconds with weights that decrease with age, as for fair share
	Share            float64 // the user's current fair share of the GPUs
}

// Journal describes the daemon's journal.
type Journal struct {
	Bytes    int64
	Snapshot time.Time // time of the newest snapshot, or zero if there is none
	Full     bool
}
