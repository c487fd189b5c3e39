package compose

import (
	"strings"
	"testing"
)

// TestSubmission: a service is submitted once per replica. A suite without any
// task is refused.
func TestSubmission(t *testing.T) {
	for text, want := range map[string]struct {
		tasks int
		err   string
	}{
		"x-carma: {task: true}\nservices:\n  a:\n    image: i\n    scale: 3\n  b:\n    image: i\n":                     {tasks: 4},
		"x-carma: {task: true}\nservices:\n  a:\n    image: i\n    scale: 0\n":                                         {err: "suite s has no tasks; all services have 0 replicas"},
		"x-carma: {task: true}\nservices:\n  a:\n    image: i\n    scale: 6000\n  b:\n    image: i\n    scale: 6000\n": {err: "more than "},
		"services:\n  a:\n    image: i\n": {tasks: 0},
	} {
		s, err := Load(t.Context(), "compose.yaml", []byte(text), Options{Name: "s", Folder: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Submission()
		if len(want.err) > 0 != (err != nil) || err != nil && !strings.HasPrefix(err.Error(), want.err) {
			t.Errorf("%q: %v", text, err)
		}
		if err == nil && (len(r.Tasks) != want.tasks || r.Group != "s") {
			t.Errorf("%q: %d tasks in group %s", text, len(r.Tasks), r.Group)
		}
	}
}
