package api

import (
	"context"
)

// Dependency is a condition that a task waits for before it is queued. It refers to a
// task, all tasks of a group, or all tasks of an earlier part of the same submission.
type Dependency struct {
	Task      string `json:"task,omitempty" maxLength:"200" doc:"number or name of a task, or name of a group"`
	Part      string `json:"part,omitempty" maxLength:"200" doc:"instead: a part that comes earlier in the same submission"`
	Condition string `json:"condition,omitempty" enum:"ok,any,started" doc:"it has succeeded (default), ended in whatever way, or started"`
}

// ArrayElement is a task's place in an array. The task's environment contains it as
// CARMA_ARRAY_INDEX, _COUNT, _MIN and _MAX, and CARMA_ARRAY_ID, the number of the array's
// first task.
type ArrayElement struct {
	Index int `json:"index" minimum:"0"`
	Count int `json:"count" minimum:"1"`
	Min   int `json:"min" minimum:"0"`
	Max   int `json:"max" minimum:"0"`
}

// MaxTasks is the largest number of tasks of one submission, MaxDependencies the largest
// number of dependencies of all its tasks together.
const (
	MaxTasks        = 10_000
	MaxDependencies = 100_000
)

// Submission requests several tasks: either all are accepted, in order, or none.
type Submission struct {
	Group string   `json:"group,omitempty" doc:"name of the tasks together, unique among those that have unfinished tasks; chosen by the daemon when empty and there are several"`
	Tasks []Submit `json:"tasks" minItems:"1" maxItems:"10000"`
}

// SubmittedAll is the answer to a submission. The tasks are journaled.
type SubmittedAll struct {
	Group    string      `json:"group,omitempty"`
	Tasks    []Submitted `json:"tasks"`
	Warnings []string    `json:"warnings,omitempty" doc:"each once, of all tasks"`
}

// Preview is the result that a submission would have now. Nothing is submitted.
type Preview struct {
	Group    string        `json:"group,omitempty"`
	Tasks    []PreviewTask `json:"tasks"`
	Warnings []string      `json:"warnings,omitempty"`
}

// PreviewTask is the preview of one task.
type PreviewTask struct {
	Name     string   `json:"name"`
	Image    string   `json:"image"`
	Command  []string `json:"command,omitempty"`
	GPUCount int      `json:"gpu_count"`
	Estimate Estimate `json:"estimate"`
	// Need is the memory per GPU that would be allocated, in bytes, or 0 for whole GPUs.
	Need int64 `json:"need"`
	// GPUs lists the GPUs on which it would start at once. If there are none, Waits is the
	// reason, as a clause.
	GPUs  []GPURef `json:"gpus,omitempty"`
	Waits string   `json:"waits,omitempty"`
	// Starts is set if it would start at once, with or without GPUs.
	Starts bool `json:"starts,omitempty"`
}

// Stopped is the answer to a request to stop a group.
type Stopped struct {
	Group string  `json:"group"`
	Tasks []int64 `json:"tasks" doc:"the unfinished ones, which were asked to stop"`
}

// SubmitAll submits several tasks, all or none.
func (c *Client) SubmitAll(ctx context.Context, s Submission) (SubmittedAll, error) {
	return SubmitTasks.send(ctx, c, WithImages[Submission]{Body: s})
}

// Preview returns the result that a submission would have, without submitting it.
func (c *Client) Preview(ctx context.Context, s Submission) (Preview, error) {
	return PreviewTasks.send(ctx, c, WithImages[Submission]{Body: s})
}

// StopGroup requests the end of all unfinished tasks of a group.
func (c *Client) StopGroup(ctx context.Context, group string, r StopRequest) (Stopped, error) {
	return StopGroup.send(ctx, c, GroupStop{GroupPath{group}, r})
}

// Group lists the tasks of the newest group with the given name, including finished ones,
// in order of number. It requests one page after the other.
func (c *Client) Group(ctx context.Context, group string) ([]Task, error) {
	all, page := []Task{}, GroupPage{GroupPath: GroupPath{group}}
	for {
		some, next, err := GetGroup.sendPage(ctx, c, page)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if page.After = next; next == 0 {
			return all, nil
		}
	}
}
