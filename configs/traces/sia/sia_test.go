package sia

import (
	"fmt"
	"strings"
	"testing"

	"carma/configs/traces/joblog"
)

func read(content string) ([]string, error) {
	var got []string
	err := Read(strings.NewReader(content), joblog.Sink{
		Job: func(j joblog.Job) {
			got = append(got, fmt.Sprintf("%d %s %d %s %v%s", j.Line, j.User, j.GPUs, joblog.FormatTime(j.Submitted), j.RunTime, j.State))
		},
		Broken: func(line int, what string) { got = append(got, fmt.Sprintf("%d: %s", line, what)) },
	})
	return got, err
}

const header = "timestamp,duration,num_gpus,gpu_time,cluster\n"

func TestRead(t *testing.T) {
	for _, c := range []struct{ row, want string }{
		{"2017-10-09 07:01:55,66.0,1,66.0,aa", "2 aa 1 2017-10-09 07:01:55 1m6s"},
		{"2017-10-09 07:01:55,0.5,8,4,", "2  8 2017-10-09 07:01:55 500ms"},
		{"2017-10-09 07:01:55,1,0,0,aa", "2 aa 0 2017-10-09 07:01:55 1s"},
		{"\"2017-10-09 07:01:55\",\"66\",\"1\",,aa", "2 aa 1 2017-10-09 07:01:55 1m6s"},
		{"9.10.2017,66,1,66,aa", `2: timestamp "9.10.2017" is not a time; write for example 2017-10-07 01:11:39`},
		{"2017-10-09 07:01:55,-1,1,66,aa", `2: duration "-1" is not seconds from 0 to ten years`},
		{"2017-10-09 07:01:55,NaN,1,66,aa", `2: duration "NaN" is not seconds`},
		{"2017-10-09 07:01:55,66,1.5,66,aa", `2: num_gpus "1.5" is not a whole number from 0 to 65536`},
		{"2017-10-09 07:01:55,66,-1,66,aa", `2: num_gpus "-1" is not`},
		{"2017-10-09 07:01:55,66", "2: 2 values for 5 columns"},
	} {
		got, err := read(header + c.row + "\n2017-10-09 07:01:55,5,1,5,bb\n")
		if err != nil || len(got) != 2 || !strings.HasPrefix(got[0], c.want) || got[1] != "3 bb 1 2017-10-09 07:01:55 5s" {
			t.Errorf("%s: %q %v, want %s", c.row, got, err, c.want)
		}
	}
	if got, err := read("# remark\nNum_GPUs,Timestamp,more,duration\n2,2017-10-09 07:01:55,x,9\n"); err != nil || len(got) != 1 || got[0] != "3  2 2017-10-09 07:01:55 9s" {
		t.Errorf("%q %v", got, err)
	}
	for content, want := range map[string]string{
		"":                              "1: empty; the first line names columns: timestamp,duration,num_gpus",
		"timestamp,duration,num_gpu\n1": "1: no column num_gpus; nearest: num_gpu",
	} {
		if _, err := read(content); err == nil || err.Error() != want {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// FuzzRead: in any file, every line is a valid job or is reported, in order.
func FuzzRead(f *testing.F) {
	f.Add(header + "2017-10-09 07:01:55,66.0,1,66.0,aa\n\"2\",\n")
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
				if j.GPUs < 0 || j.GPUs > joblog.MaxGPUs || j.RunTime < 0 || j.RunTime > joblog.MaxTime || j.Submitted.IsZero() {
					t.Errorf("%+v", j)
				}
			},
			Broken: func(line int, what string) {
				at(line)
				if what == "" || strings.Contains(what, "\n") {
					t.Errorf("line %d: %q", line, what)
				}
			},
		})
	})
}
