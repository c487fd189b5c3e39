package runner

import (
	"errors"
	"strings"
	"testing"

	"carma/runner/api"
)

// TestModest: what would take many times its size is refused by its shape, and
// the first wrong task ends the look at the others.
func TestModest(t *testing.T) {
	tasks := func(one string, n int) string {
		return `{"group": "a,[{", "tasks": [` + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + `]}`
	}
	wrong := errors.New("wrong")
	for _, c := range []struct {
		name, path, body, words string
		looks                   int
	}{
		{"one task", "/v1/tasks", `{"image": "a"}`, "", 1},
		{"a task with many arguments", "/v1/tasks", `{"command": [` + strings.Repeat(`"",`, taskValues) + `""]}`, "put them into a file", 0},
		{"another request with many values", "/v1/speed", `[` + strings.Repeat(`{},`, taskValues) + `{}]`, "at most 20000", 0},
		{"as many tasks as may be", "/v1/submissions", tasks(`{"image": "a", "env": ["A=\"{,"]}`, api.MaxTasks), "", api.MaxTasks},
		{"one more", "/v1/submissions/preview", tasks(`{}`, api.MaxTasks+1), "at most 10000 tasks", 0},
		{"not even objects", "/v1/submissions", tasks(`1`, api.MaxTasks+1), "at most 10000 tasks", 0},
		{"twice", "/v1/submissions", `{"tasks": [` + strings.Repeat("1,", 6000) + `1], "tasks": [` + strings.Repeat("1,", 6000) + `1]}`, "at most 10000 tasks", 0},
		{"many values", "/v1/submissions", tasks(`{"env": [`+strings.Repeat(`"",`, 1000)+`""]}`, 500), "several parts", 0},
		{"the second is wrong", "/v1/submissions", tasks(`{"image": ""}`, 5), "wrong", 2},
		{"no JSON", "/v1/submissions", `{"tasks": [`, "", 0},
	} {
		looks := 0
		err := checkShape(c.path, []byte(c.body), func(task any, at int) error {
			if looks++; looks == 2 && c.words == "wrong" {
				return wrong
			}
			if at != looks-1 && c.path != "/v1/tasks" {
				t.Errorf("%s: task %d is looked at as %d", c.name, looks-1, at)
			}
			return nil
		})
		if looks != c.looks || (err == nil) != (c.words == "") || err != nil && !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %d looks, %v; want %d, %q", c.name, looks, err, c.looks, c.words)
		}
	}
}
