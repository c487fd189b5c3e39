package metrics

import "time"

// State is the data of one page. Memory is in bytes, energy in joules.
type State struct {
	Now      time.Time // of the daemon: on a simulated server not the clock's
	GPUs     []GPU
	Tasks    []Task // tasks with GPUs
	Queue    []Queue
	Held     int // unfinished tasks in no queue: held, or waiting for others
	Away     int // suspended tasks
	Users    []User
	IdleJ    float64 // energy of GPUs without tasks
	EngineUp bool
	Ready    bool // tasks that are submitted now can be kept and started
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
	Known, Coarse                  bool // the activity is known; it is an upper bound
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
	Progress   float64 // 0 to 1; negative: not known
	Slowdown   float64 // its time relative to its time alone, or 0 without neighbours
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

// Queue counts the waiting tasks of one priority that wait for one reason.
type Queue struct {
	Priority, Reason string
	Tasks            int
	// Oldest is the longest time that one of them has waited.
	Oldest time.Duration
}

// User is the usage of one user.
type User struct {
	Name             string
	Running, Waiting int
	GPUs             int
	Memory           int64
	GPUSeconds       float64 // since it began to be counted, over restarts
	EnergyJ          float64 // the same
	Usage            float64 // GPU-seconds as fair share counts them: older ones less
	Share            float64 // of the GPUs that it has a right to now
}

// Journal is about the daemon's journal.
type Journal struct {
	Bytes    int64
	Snapshot time.Time // of the newest one, or zero if there is none
	Full     bool
}
