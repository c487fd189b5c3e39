package containerd

import "testing"

func TestLoggerArg(t *testing.T) {
	for arg, want := range map[string]struct {
		dir   string
		bytes int64
		bad   bool
	}{
		loggerArg("/a:b", 5): {dir: "/a:b", bytes: 5},
		"/out/carma-1-1":     {dir: "/out/carma-1-1"}, // an older daemon
		"5":                  {bad: true},
		"5:relative":         {bad: true},
		"much:/a":            {bad: true},
		"":                   {bad: true},
	} {
		dir, bytes, err := parseLoggerArg(arg)
		if dir != want.dir || bytes != want.bytes || (err != nil) != want.bad {
			t.Errorf("%q: %q, %d, %v", arg, dir, bytes, err)
		}
	}
}
