// Package philly reads the job log of Microsoft's Philly clusters in its published form
// (GitHub msr-fiddle/philly-traces, the file cluster_job_log).
//
// The log is one JSON array of jobs:
//
//	{"status": "Pass", "vc": "...", "jobid": "...", "user": "...",
//	 "submitted_time": "2017-10-07 01:11:39",
//	 "attempts": [{"start_time": "...", "end_time": "...",
//	               "detail": [{"ip": "m47", "gpus": ["gpu0", "gpu1"]}]}]}
//
// status is Pass, Killed or Failed. Times have no zone. A job may have no attempts, and
// an attempt no start or no end (null, "" or "None"). Then the job's GPUs or its run time
// are unknown. A job's GPUs are the GPUs of its first attempt. Its run time is from the
// first start to the last end, so waiting between attempts counts as running. The
// analysis published with the log does the same.
//
// Jobs may also come one after another without the array.
package philly

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"carma/configs/traces/joblog"
	"carma/internal/suggest"
)

type job struct {
	Status    string    `json:"status"`
	ID        string    `json:"jobid"`
	User      string    `json:"user"`
	Submitted string    `json:"submitted_time"`
	Attempts  []attempt `json:"attempts"`
}

type attempt struct {
	Start  string   `json:"start_time"`
	End    string   `json:"end_time"`
	Detail []detail `json:"detail"`
}

type detail struct {
	GPUs []json.RawMessage `json:"gpus"`
}

var states = map[string]joblog.State{"Pass": joblog.Done, "Killed": joblog.Killed, "Failed": joblog.Failed}

// Read reads a log. It fails if reading fails, or if the file is not such a log. In the
// second case the error begins with the number of the line.
func Read(r io.Reader, to joblog.Sink) error {
	s := newSplitter(r)
	for {
		text, line, err := s.next()
		var broken *joblog.LineError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &broken):
			to.Broken(broken.Line, broken.What)
			continue
		case err != nil:
			return err
		}
		var j job
		if err := json.Unmarshal(text, &j); err != nil {
			to.Broken(line, "not a job: "+plain(err))
			continue
		}
		s.sound()
		out, err := j.parse()
		if err != nil {
			to.Broken(line, err.Error())
			continue
		}
		out.Line = line
		to.Job(out)
	}
}

// plain formats an error of the JSON library as one line.
func plain(err error) string {
	return strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", " "), "json: ")
}

func (j *job) parse() (joblog.Job, error) {
	out := joblog.Job{ID: j.ID, User: j.User, RunTime: joblog.Unknown}
	if j.ID == "" {
		return out, errors.New("jobid is missing")
	}
	var ok bool
	if out.State, ok = states[j.Status]; !ok {
		return out, fmt.Errorf("unknown status %.40q; nearest: %s", j.Status, suggest.Names(j.Status, []string{"Pass", "Killed", "Failed"}, 1)[0])
	}
	if absent(j.Submitted) {
		return out, errors.New("submitted_time is missing")
	}
	var err error
	if out.Submitted, err = joblog.ParseTime(j.Submitted); err != nil {
		return out, fmt.Errorf("submitted_time %w", err)
	}
	if len(j.Attempts) == 0 {
		return out, nil
	}
	first, last := &j.Attempts[0], &j.Attempts[len(j.Attempts)-1]
	for _, d := range first.Detail {
		out.GPUs += len(d.GPUs)
	}
	if out.GPUs > joblog.MaxGPUs {
		return out, fmt.Errorf("%d GPUs are more than %d", out.GPUs, joblog.MaxGPUs)
	}
	out.RunTime, err = between(first.Start, last.End)
	return out, err
}

// absent reports whether a time is missing, which the log expresses in several ways.
func absent(s string) bool { return s == "" || s == "None" }

func between(start, end string) (time.Duration, error) {
	if absent(start) || absent(end) {
		return joblog.Unknown, nil
	}
	return joblog.Between(start, end)
}
