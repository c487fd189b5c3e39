// Package sia reads job tables in the form of Sia's simulator (GitHub
// siasosp23/artifacts, sia-simulator/traces), which others use too. One of them
// has 82,247 jobs of Microsoft's Philly cluster.
//
// The table has a line for each job:
//
//	timestamp,duration,num_gpus,gpu_time,cluster
//	2017-10-09 07:01:55,66.0,1,66.0,11cb48
//
// timestamp is the submission, without a zone; duration is in seconds. cluster is
// the virtual cluster, which stands for the user, as users are not in it; nor is
// how jobs ended. gpu_time is their product and is ignored, as are other columns.
// Columns may be in any order; the first three are required.
package sia

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"carma/configs/traces/joblog"
)

var need = []string{"timestamp", "duration", "num_gpus"}

// Read reads a table. It fails if reading fails, or if this is no such table; then
// the error begins with the number of the line.
func Read(r io.Reader, to joblog.Sink) error {
	t, err := joblog.NewTable(r, need...)
	if err != nil {
		return err
	}
	for {
		var broken *joblog.LineError
		switch err := t.Next(); {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &broken):
			to.Broken(broken.Line, broken.What)
			continue
		case err != nil:
			return err
		}
		job, err := parse(t)
		if err != nil {
			to.Broken(t.Line(), err.Error())
			continue
		}
		to.Job(job)
	}
}

func parse(t *joblog.Table) (joblog.Job, error) {
	j := joblog.Job{User: strings.Clone(t.Get("cluster")), Line: t.Line()}
	var err error
	if j.Submitted, err = joblog.ParseTime(t.Get("timestamp")); err != nil {
		return j, fmt.Errorf("timestamp %w", err)
	}
	if j.GPUs, err = strconv.Atoi(t.Get("num_gpus")); err != nil || j.GPUs < 0 || j.GPUs > joblog.MaxGPUs {
		return j, fmt.Errorf("num_gpus %.40q is not a whole number from 0 to %d", t.Get("num_gpus"), joblog.MaxGPUs)
	}
	if j.RunTime, err = joblog.ParseSeconds(t.Get("duration")); err != nil {
		return j, fmt.Errorf("duration %w", err)
	}
	return j, nil
}
