// Package helios reads the job logs of SenseTime's Helios clusters in their published
// form (GitHub S-Lab-System-Group/HeliosData: Earth, Saturn, Uranus and Venus, each a
// cluster_log.csv).
//
// The log is a table with a line for each Slurm job:
//
//	job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
//
// Times are like 2020-06-09 18:41:01, without a zone. duration (from start to end) and
// queue are whole seconds. state is COMPLETED, CANCELLED, FAILED, TIMEOUT, NODE_FAIL or,
// once, SUSPENDED. More than half of the jobs ask for no GPU. Columns may be in any
// order; other columns are ignored.
package helios

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"carma/configs/traces/joblog"
	"carma/internal/suggest"
)

// need are the required columns. duration may be missing if start_time and
// end_time are there.
var need = []string{"job_id", "gpu_num", "state", "submit_time"}

// states maps Slurm's states to carma's. As in the log authors' analysis, a job that
// exceeded its time limit or lost its node counts as failed.
var states = map[string]joblog.State{
	"COMPLETED": joblog.Done, "CANCELLED": joblog.Killed, "FAILED": joblog.Failed,
	"TIMEOUT": joblog.Failed, "NODE_FAIL": joblog.Failed, "SUSPENDED": joblog.Other,
}

var stateNames = []string{"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "SUSPENDED"}

// Read reads a log. It fails if reading fails or if the file is not such a log. In the
// second case the error begins with the number of the line.
func Read(r io.Reader, to joblog.Sink) error {
	t, err := joblog.NewTable(r, need...)
	if err != nil {
		return err
	}
	if !t.Has("duration") && !(t.Has("start_time") && t.Has("end_time")) {
		return fmt.Errorf("%d: no column duration, nor start_time and end_time", t.Line())
	}
	return joblog.Rows(t, parse, to.Job, to.Broken)
}

func parse(t *joblog.Table) (joblog.Job, error) {
	j := joblog.Job{ID: strings.Clone(t.Get("job_id")), User: strings.Clone(t.Get("user")), Line: t.Line()}
	if j.ID == "" {
		return j, errors.New("job_id is missing")
	}
	var ok bool
	state := t.Get("state")
	if j.State, ok = states[state]; !ok {
		return j, fmt.Errorf("unknown state %.40q; nearest: %s", state, suggest.Names(state, stateNames, 1)[0])
	}
	var err error
	if j.GPUs, err = t.GPUs("gpu_num", 0); err != nil {
		return j, err
	}
	if j.Submitted, err = joblog.ParseTime(t.Get("submit_time")); err != nil {
		return j, fmt.Errorf("submit_time %w", err)
	}
	j.RunTime, err = runTime(t)
	return j, err
}

// runTime returns the duration column or, if it is empty, the time from start to end.
func runTime(t *joblog.Table) (time.Duration, error) {
	if text := t.Get("duration"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds < 0 || seconds > int64(joblog.MaxTime/time.Second) {
			return 0, fmt.Errorf("duration %.40q is not whole seconds from 0 on", text)
		}
		return time.Duration(seconds) * time.Second, nil
	}
	start, end := t.Get("start_time"), t.Get("end_time")
	if start == "" || end == "" {
		return joblog.Unknown, nil
	}
	return joblog.Between(start, end)
}
