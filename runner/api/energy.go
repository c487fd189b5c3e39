package api

import "time"

// Energy is the energy used by the GPUs, in joules. Time without a daemon counts if the
// same tasks ran all that time.
type Energy struct {
	Since  time.Time          `json:"since" doc:"when it began to be counted"`
	TasksJ float64            `json:"tasks_j" doc:"joules of all tasks, of removed ones too"`
	IdleJ  float64            `json:"idle_j" doc:"joules of GPUs without tasks"`
	Users  map[string]float64 `json:"users" doc:"joules of each user's tasks"`
}
