package containers

import (
	"context"
	"errors"
)

// JobID names a job of a cluster.
type JobID struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID identifies the job. Another job of the same name has another UID.
	UID string `json:"uid"`
}

// String is the job's name for people: namespace/name.
func (j JobID) String() string { return j.Namespace + "/" + j.Name }

// Job is a job of a cluster that wants its GPUs from carma. The cluster makes its pods,
// one after the other; each waits until it is given its GPUs.
type Job struct {
	JobID
	// Owner is the user who made the job, as the cluster names users, or empty if
	// unknown.
	Owner string
	// Memory is the requested memory on each GPU in bytes. It is 0 if none was requested
	// or the cluster could not read it; Settings have it then.
	Memory int64
	// Settings are the job's other requests, by name.
	Settings map[string]string
	// Image, Entrypoint, Command and Env describe its program.
	Image               string
	Entrypoint, Command []string
	Env                 []string // KEY=value
	// Cannot says why its pods can have no GPUs, or is empty if they can.
	Cannot string
	// Waits is set if the job has a pod that no attempt has yet.
	Waits bool
	// Ended is the mark of the last call of SuspendJob, or empty if there was none.
	Ended string
	// Suspended is set if somebody has suspended the job, Done if the job has succeeded.
	// Failed says why the job failed, or is empty if it did not.
	Suspended, Done bool
	Failed          string
}

// Jobber is a driver whose cluster has jobs of its own. An attempt of such a job is one
// of its pods: see [Spec].Job.
type Jobber interface {
	// Jobs lists all jobs that want GPUs, ended ones included. A job that is not listed
	// was deleted.
	Jobs(ctx context.Context) ([]Job, error)
	// JobNews gets a token when a job or one of its pods may have changed.
	JobNews() <-chan struct{}
	// SuspendJob keeps a job from making pods, and ends its pods. It does nothing if the
	// job is gone or another job has its name. The job has the mark afterwards.
	SuspendJob(ctx context.Context, id JobID, mark string) error
	// TellJob shows a message as an event of the job. Equal messages are shown once.
	TellJob(ctx context.Context, id JobID, reason, text string) error
}

// ErrNoPod means that the job of an attempt has no pod for it. The job will make a pod
// later, or has ended.
var ErrNoPod = errors.New("its job has no pod that waits")
