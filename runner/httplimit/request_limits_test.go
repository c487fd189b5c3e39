package httplimit

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carma/runner/api"
)

// TestModest checks that requests that would take many times their size in memory are refused
// before they are decoded. The first wrong task ends the check of the others.
func TestModest(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	tasks := func(one string, n int) string {
		return `{"group": "a,[{", "tasks": [` + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + `]}`
	}
	wrong := errors.New("wrong")
	for _, c := range []struct {
		name, path, body, words string
		checked                 int
	}{
		{"one task", "/v1/tasks", `{"image": "a"}`, "", 1},
		{"a task with many arguments", "/v1/tasks", `{"command": [` + strings.Repeat(`"",`, taskValues) + `""]}`, "put them into a file", 0},
		{"another request with many values", "/v1/speed", `[` + strings.Repeat(`{},`, taskValues) + `{}]`, "at most 20000", 0},
		{"as many tasks as may be", "/v1/submissions", tasks(`{"image": "a", "env": ["A=\"{,"]}`, api.MaxTasks), "", api.MaxTasks},
		{"one more", "/v1/submissions/preview", tasks(`{}`, api.MaxTasks+1), "at most 10000 tasks", api.MaxTasks},
		{"not even objects", "/v1/submissions", tasks(`1`, 5), "cannot be a number", 1},
		{"twice", "/v1/submissions", `{"tasks": [{}], "tasks": [{}]}`, "tasks twice", 1},
		{"many values", "/v1/submissions", tasks(`{"env": [`+strings.Repeat(`"",`, 1000)+`""]}`, 500), "several parts", 499},
		{"many values of one", "/v1/submissions", tasks(`{"env": [`+strings.Repeat(`"",`, taskValues)+`""]}`, 1), "put them into a file", 0},
		{"the second is wrong", "/v1/submissions", tasks(`{"image": ""}`, 5), "wrong", 2},
		{"cut off", "/v1/submissions", `{"tasks": [`, "no JSON", 0},
		{"nothing", "/v1/submissions", ``, "no JSON", 0},
		{"no object", "/v1/submissions", `[]`, "an object with tasks is expected, at byte 1", 0},
		{"no list", "/v1/submissions", `{"tasks": {}}`, "a list of tasks is expected", 0},
		{"a group that is no text", "/v1/submissions", `{"group": 1}`, "the submission's group cannot be a number", 0},
		{"an unknown field", "/v1/submissions", `{"grupo": "a"}`, `no field "grupo"`, 0},
		{"something behind it", "/v1/submissions", tasks(`{"image": "a"}`, 1) + "{}", "something follows", 1},
	} {
		checked := 0
		check := func(task any, at int) error {
			if checked++; checked == 2 && c.words == "wrong" {
				return wrong
			}
			if at != checked-1 && c.path != "/v1/tasks" {
				t.Errorf("%s: task %d is looked at as %d", c.name, checked-1, at)
			}
			return nil
		}
		var err error
		if ofSeveral(c.path) {
			body := strings.NewReader(c.body)
			var s api.Submission
			if s, err = readSubmission(body, check); err == nil && (len(s.Tasks) != c.checked || s.Group != "a,[{" || s.Tasks[0].Image != "a") {
				t.Errorf("%s: %d tasks of %q, want %d", c.name, len(s.Tasks), s.Group, c.checked)
			}
			if body.Len() > 0 {
				t.Errorf("%s: %d bytes were not read, and their sender never reads the answer", c.name, body.Len())
			}
		} else {
			err = checkShape(c.path, []byte(c.body), check)
		}
		if checked != c.checked || (err == nil) != (c.words == "") || err != nil && !strings.Contains(fmt.Sprint(err), c.words) {
			t.Errorf("%s: %d checked, %v; want %d, %q", c.name, checked, err, c.checked, c.words)
		}
	}
}

// TestPatientReader checks that the daemon waits for a slow sender for a fixed total time. The
// time that the daemon itself takes in between does not count.
func TestPatientReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var until time.Time
		slow := func(d time.Time) error { until = d; return nil }
		r := &patientReader{ReadCloser: io.NopCloser(sleeper(time.Second)), setTimeout: slow, left: 5 * time.Second}
		for i := range 5 {
			begun := time.Now()
			if _, err := r.Read(make([]byte, 1)); err != nil || until.Sub(begun) != time.Duration(5-i)*time.Second {
				t.Errorf("read %d may take %s, %v", i, until.Sub(begun), err)
			}
			time.Sleep(time.Minute)
		}
		begun := time.Now()
		if _, _ = r.Read(make([]byte, 1)); until.After(begun) {
			t.Errorf("after 5 s of waiting it may take %s", until.Sub(begun))
		}
	})
}

// sleeper is a sender that waits before each byte.
type sleeper time.Duration

func (s sleeper) Read(b []byte) (int, error) {
	time.Sleep(time.Duration(s))
	return 1, nil
}
