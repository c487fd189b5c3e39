package containers

import (
	"context"
	"errors"
)

// JobID names a job of a cluster.
type JobID struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID is the job's own for ever: another job of the same name has another one.
	UID string `json:"uid"`
}

// String is the job's name for people: namespace/name.
func (j JobID) String() string { return j.Namespace + "/" + j.Name }

// Job is a job of a cluster that wants its GPUs from carma. The cluster makes its pods,
// one after the other; each waits until it is given its GPUs.
type Job struct {
	JobID
	// Owner made it, as the cluster knows its users; empty: not known.
	Owner string
	// Memory is the memory on each GPU that was asked for, in bytes; 0: none was, or
	// Settings have it, as the cluster could not read it.
	Memory int64
	// Settings are what else was asked for, by name.
	Settings map[string]string
	// Image, Entrypoint, Command and Env are those of its program.
	Image               string
	Entrypoint, Command []string
	Env                 []string // KEY=value
	// Cannot is why its pods can have no GPUs; empty: they can.
	Cannot string
	// Waits: it has a pod that no attempt has yet.
	Waits bool
	// Ended is the mark of the last call of SuspendJob; empty: there was none.
	Ended string
	// Suspended: somebody has suspended it. Done: it has succeeded. Failed is why it
	// failed; empty: it did not.
	Suspended, Done bool
	Failed          string
}

// Jobber is a driver whose cluster has jobs of its own. An attempt of such a job is one
// of its pods: see [Spec].Job.
type Jobber interface {
	// Jobs are all jobs that want GPUs, those that have ended too. A job that is not
	// listed was deleted.
	Jobs(ctx context.Context) ([]Job, error)
	// JobNews gets a token when a job or one of its pods may have changed.
	JobNews() <-chan struct{}
	// SuspendJob keeps a job from making pods, and ends those that it has. A job that
	// is gone, or another one of its name, is left alone. It bears the mark from then on.
	SuspendJob(ctx context.Context, id JobID, mark string) error
	// TellJob shows a message to whoever looks at the job. The same one is shown once.
	TellJob(ctx context.Context, id JobID, reason, text string) error
}

// ErrNoPod: the job of an attempt has no pod that could be its own. The job makes one
// some time, or has ended.
var ErrNoPod = errors.New("its job has no pod that waits")
