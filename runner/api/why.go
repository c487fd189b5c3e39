package api

import "time"

// Why is the answer to "why is it waiting" (or where it runs, or how it ended).
type Why struct {
	Task     int64  `json:"task"`
	Phase    string `json:"phase"`
	Position int    `json:"position,omitempty"`
	Queue    string `json:"queue,omitempty" doc:"main or recovery"`
	// Summary is the single deciding reason, a sentence.
	Summary    string   `json:"summary"`
	ReasonCode string   `json:"reason_code,omitempty" doc:"the code of that reason"`
	GPUs       []WhyGPU `json:"gpus,omitempty"`
	// Start is the expected start of a pending task, or nil if unknown.
	Start *Start `json:"start,omitempty"`
	// Priority and Account are set for an unfinished task.
	Priority string    `json:"priority,omitempty"`
	Account  *Account  `json:"account,omitempty" doc:"what its user has, and may have"`
	Now      time.Time `json:"now"`
}

// Account is the usage and quota of one user, or of all users of a group. A quota of 0
// means no quota.
type Account struct {
	User        string  `json:"user,omitempty"`
	Group       string  `json:"group,omitempty" doc:"in place of a user"`
	Tasks       int     `json:"tasks" doc:"with GPUs"`
	GPUs        int     `json:"gpus" doc:"counted for each task"`
	Memory      int64   `json:"memory" doc:"bytes booked"`
	QuotaTasks  int     `json:"quota_tasks,omitempty"`
	QuotaGPUs   int     `json:"quota_gpus,omitempty"`
	QuotaMemory int64   `json:"quota_memory,omitempty"`
	Fair        bool    `json:"fair,omitempty" doc:"users take turns"`
	Used        float64 `json:"used" doc:"GPU-seconds, older ones less"`
	Ahead       int     `json:"ahead,omitempty" doc:"users with waiting tasks who go first in the order fair"`
	Waiting     int     `json:"waiting,omitempty" doc:"tasks in the queue"`
	Weight      float64 `json:"weight,omitempty" doc:"its right in the order fair; absent of a group whose users take turns by themselves"`
	Share       float64 `json:"share,omitempty" doc:"of the GPUs, 0 to 1, among all who have tasks now; absent: it has none, or the order is another"`
}

// WhyGPU is the reason why one GPU was rejected, or shows that it fits.
type WhyGPU struct {
	GPURef
	Fits bool   `json:"fits"`
	Rule string `json:"rule,omitempty" doc:"the precondition that rejected it: memory, smact, warm-up, ..."`
	Text string `json:"text" doc:"what goes after the name of the GPU"`
}
