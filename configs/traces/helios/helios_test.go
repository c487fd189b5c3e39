package helios

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"carma/configs/traces/joblog"
	"carma/configs/traces/synth"
)

func read(content string) ([]string, error) {
	var got []string
	err := Read(strings.NewReader(content), joblog.Sink{
		Job: func(j joblog.Job) {
			got = append(got, fmt.Sprintf("%d %s %s %s %d %s %v", j.Line, j.ID, j.User, j.State, j.GPUs, joblog.FormatTime(j.Submitted), j.RunTime))
		},
		Broken: func(line int, what string) { got = append(got, fmt.Sprintf("%d: %s", line, what)) },
	})
	return got, err
}

func TestRead(t *testing.T) {
	content, err := os.ReadFile("testdata/cluster_log.csv")
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(string(content))
	want := []string{
		"2 1400001 uA1 done 1 2020-06-09 08:00:00 20m0s",
		"3 1400002 uA1 done 0 2020-06-09 08:00:30 1s",
		"4 1400003 uB2 failed 8 2020-06-09 08:01:00 9s",
		"5 1400004 uC3 killed 16 2020-06-09 08:02:00 48h0m0s",
		"6 1400005 uC3 failed 2 2020-06-09 08:03:00 1h0m0s",
		"7 1400006 uB2 failed 4 2020-06-09 08:04:00 1m0s",
		"8 1400007 uB2 other 1 2020-06-09 08:05:00 1m0s",
	}
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%v\n%s", err, strings.Join(got, "\n"))
	}
}

const header = "job_id,gpu_num,state,submit_time,start_time,end_time,duration\n"

func TestBroken(t *testing.T) {
	for _, c := range []struct{ row, want string }{
		{"1,1,COMPLETED,2020-06-09 08:00:00,,,60", "2 1  done 1 2020-06-09 08:00:00 1m0s"},
		{"1,1,COMPLETED,2020-06-09 08:00:00,2020-06-09 08:00:00,2020-06-09 08:02:00,", "2 1  done 1 2020-06-09 08:00:00 2m0s"},
		{"1,1,COMPLETED,2020-06-09 08:00:00,2020-06-09 08:00:00,,", "2 1  done 1 2020-06-09 08:00:00 -1ns"},
		{`"1","1","COMPLETED","2020-06-09 08:00:00",,,"60"`, "2 1  done 1 2020-06-09 08:00:00 1m0s"},
		{",1,COMPLETED,2020-06-09 08:00:00,,,60", "2: job_id is missing"},
		{"1,1,COMPLETE,2020-06-09 08:00:00,,,60", `2: unknown state "COMPLETE"; nearest: COMPLETED`},
		{"1,-1,COMPLETED,2020-06-09 08:00:00,,,60", `2: gpu_num "-1" is not a whole number from 0 to 65536`},
		{"1,,COMPLETED,2020-06-09 08:00:00,,,60", `2: gpu_num "" is not`},
		{"1,1,COMPLETED,09.06.2020,,,60", `2: submit_time "09.06.2020" is not a time; write for example 2017-10-07 01:11:39`},
		{"1,1,COMPLETED,2020-06-09 08:00:00,,,-3", `2: duration "-3" is not whole seconds from 0 on`},
		{"1,1,COMPLETED,2020-06-09 08:00:00,,,1e9", `2: duration "1e9" is not`},
		{"1,1,COMPLETED,2020-06-09 08:00:00,2020-06-09 08:00:01,2020-06-09 08:00:00,", "2: end_time 2020-06-09 08:00:00 is before start_time 2020-06-09 08:00:01"},
		{"1,1,COMPLETED,2020-06-09 08:00:00,soon,2020-06-09 08:00:00,", `2: start_time "soon" is not a time`},
		{"1,1,COMPLETED", "2: 3 values for 7 columns"},
		{"1,\"1,COMPLETED", "2: not CSV: "},
	} {
		got, err := read(header + c.row + "\n2,1,FAILED,2020-06-09 08:00:00,,,5\n")
		if err != nil || len(got) != 2 || !strings.HasPrefix(got[0], c.want) || !strings.HasPrefix(got[1], "3 2  failed 1") {
			t.Errorf("%s: %q %v, want %s", c.row, got, err, c.want)
		}
	}
	for content, want := range map[string]string{
		"": "1: empty; the first line names columns: job_id,gpu_num,state,submit_time",
		"job_id,gpus,state,submit_time,duration\n":                 "1: no column gpu_num; nearest: gpus",
		"job_id,gpu_num,state,submit_time,start_time\n1,1,x,y,z\n": "1: no column duration, nor start_time and end_time",
	} {
		if _, err := read(content); err == nil || err.Error() != want {
			t.Errorf("%q: %v", content, err)
		}
	}
}

func TestSynthetic(t *testing.T) {
	var log bytes.Buffer
	if err := synth.Helios(&log, synth.Options{Jobs: 600, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	got, err := read(log.String())
	if err != nil || len(got) != 600 {
		t.Errorf("%d jobs, %v", len(got), err)
	}
	for _, g := range got {
		if strings.Contains(strings.Fields(g)[0], ":") {
			t.Error(g)
		}
	}
}

// FuzzRead: in any file, every line is a valid job or is reported, in order.
func FuzzRead(f *testing.F) {
	if content, err := os.ReadFile("testdata/cluster_log.csv"); err == nil {
		f.Add(string(content))
	}
	f.Add(header + "1,1,COMPLETED,2020-06-09 08:00:00,2020-06-09 08:00:00,,\n\"2\",\n")
	f.Fuzz(func(t *testing.T, content string) {
		lines, last := strings.Count(content, "\n")+1, 1
		at := func(line int) {
			if line <= last || line > lines {
				t.Errorf("line %d of %d after %d", line, lines, last)
			}
			last = line
		}
		_ = Read(strings.NewReader(content), joblog.Sink{
			Job: func(j joblog.Job) {
				at(j.Line)
				if j.ID == "" || j.GPUs < 0 || j.GPUs > joblog.MaxGPUs || j.RunTime < joblog.Unknown || j.RunTime > joblog.MaxTime || j.Submitted.IsZero() || j.State == "" {
					t.Errorf("%+v", j)
				}
			},
			Broken: func(line int, what string) {
				at(line)
				if what == "" || strings.Contains(what, "\n") {
					t.Errorf("%q", what)
				}
			},
		})
	})
}
