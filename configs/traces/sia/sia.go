// Package sia reads job tables in the format of Sia's simulator (GitHub
// siasosp23/artifacts, sia-simulator/traces), which other simulators use too. One of
// these tables has 82,247 jobs of Microsoft's Philly cluster.
//
// The table has a line for each job:
//
//	timestamp,duration,num_gpus,gpu_time,cluster
//	2017-10-09 07:01:55,66.0,1,66.0,11cb48
//
// timestamp is the submission time, without a zone. duration is in seconds. cluster is
// the virtual cluster. It stands for the user, because the table has no users. The table
// has no final states of jobs. gpu_time is duration times num_gpus. It and other columns
// are ignored. Columns may be in any order; the first three are required.
package sia

import (
	"fmt"
	"io"
	"strings"

	"carma/configs/traces/joblog"
)

var need = []string{"timestamp", "duration", "num_gpus"}

// Read reads a table. It fails if reading fails or if the file is not such a table. In the
// second case the error begins with the number of the line.
func Read(r io.Reader, to joblog.Sink) error {
	t, err := joblog.NewTable(r, need...)
	if err != nil {
		return err
	}
	return joblog.Rows(t, parse, to.Job, to.Broken)
}

func parse(t *joblog.Table) (joblog.Job, error) {
	j := joblog.Job{User: strings.Clone(t.Get("cluster")), Line: t.Line()}
	var err error
	if j.Submitted, err = joblog.ParseTime(t.Get("timestamp")); err != nil {
		return j, fmt.Errorf("timestamp %w", err)
	}
	if j.GPUs, err = t.GPUs("num_gpus", 0); err != nil {
		return j, err
	}
	if j.RunTime, err = joblog.ParseSeconds(t.Get("duration")); err != nil {
		return j, fmt.Errorf("duration %w", err)
	}
	return j, nil
}
