package containers

import (
	"context"
	"errors"
)

// JobID names a job of a cluster.
type JobID struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID identifies the job. Another job with the same name has another UID.
	UID string `json:"uid"`
}

// String returns the job's name for people: namespace/name.
func (j JobID) String() string { return j.Namespace + "/" + j.Name }

// Job is a job of a cluster that requests its GPUs from carma. The cluster makes its pods
// one after the other. Each pod waits until it gets its GPUs.
type Job struct {
	JobID
	// Owner is the user who made the job, as named by the cluster, or empty if unknown.
	Owner string
	// Memory is the requested memory on each GPU in bytes. It is 0 if no memory was
	// requested or the cluster could not parse the request, which is then in Settings.
	Memory int64
	// Settings contains the job's other requests, by name.
	Settings map[string]string
	// Image, Entrypoint, Command and Env describe its program.
	Image               string
	Entrypoint, Command []string
	Env                 []string // KEY=value
	// Cannot is the reason why its pods can have no GPUs, or empty if they can.
	Cannot string
	// Waits is set if the job has a pod without an attempt.
	Waits bool
	// Ended is the mark of the last call of SuspendJob, or empty if there was none.
	Ended string
	// Suspended is set if somebody has suspended the job, Done if the job has succeeded.
	// Failed is the reason why the job failed, or empty if it did not.
	Suspended, Done bool
	Failed          string
}

// Jobber is a driver whose cluster has its own jobs. An attempt of such a job is one of
// its pods: see [Spec].Job.
type Jobber interface {
	// Jobs lists all jobs that request GPUs, including ended ones. A job that is not listed
	// was deleted.
	Jobs(ctx context.Context) ([]Job, error)
	// JobNews receives a token when a job or one of its pods may have changed.
	JobNews() <-chan struct{}
	// SuspendJob stops a job from making pods, and ends its pods. It does nothing if the job
	// is gone or another job has its name. It sets the job's mark.
	SuspendJob(ctx context.Context, id JobID, mark string) error
	// TellJob shows a message as an event of the job. Identical messages are shown once.
	TellJob(ctx context.Context, id JobID, reason, text string) error
}

// ErrNoPod means that the job of an attempt has no pod for it. The job will make a pod
// later, or has ended.
var ErrNoPod = errors.New("its job has no pod that waits")
