package api

import "time"

// Energy is what the GPUs have used, in joules. Time in which no daemon ran counts
// where the same tasks ran all the time.
type Energy struct {
	Since  time.Time          `json:"since" doc:"when it began to be counted"`
	TasksJ float64            `json:"tasks_j" doc:"joules of all tasks, of removed ones too"`
	IdleJ  float64            `json:"idle_j" doc:"joules of GPUs without tasks"`
	Users  map[string]float64 `json:"users" doc:"joules of each user's tasks"`
}
