// Package jobs makes tasks of a cluster's Jobs.
//
// A Job of a cluster that is annotated for carma becomes a task. The cluster makes its pods,
// one after the other, and each pod is an attempt. The Job decides whether there is another
// attempt, so after an attempt the task is held until the Job has a waiting pod. If the task
// ends before its Job, the Job is suspended.
//
// Each comparison reads the present state of the Jobs, not their changes, so it does not matter
// for how long no daemon ran.
package jobs
