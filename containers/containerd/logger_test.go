package containerd

import (
	"testing"

	"carma/containers/containerd/logfile"
)

func TestLoggerArg(t *testing.T) {
	for arg, want := range map[string]struct {
		dir   string
		bytes int64
		talk  logfile.Talk
		bad   bool
	}{
		loggerArg("/a:b", 5, logfile.TalkNone):       {dir: "/a:b", bytes: 5},
		loggerArg("/a,b:c", 5, logfile.TalkTerminal): {dir: "/a,b:c", bytes: 5, talk: logfile.TalkTerminal},
		loggerArg("/a", 0, logfile.TalkInput):        {dir: "/a", talk: logfile.TalkInput},
		"/out/carma-1-1":                             {dir: "/out/carma-1-1"}, // from an older daemon
		"5":                                          {bad: true},
		"5:relative":                                 {bad: true},
		"much:/a":                                    {bad: true},
		"5,other:/a":                                 {bad: true},
		"":                                           {bad: true},
	} {
		dir, bytes, talk, err := parseLoggerArg(arg)
		if dir != want.dir || bytes != want.bytes || talk != want.talk || (err != nil) != want.bad {
			t.Errorf("%q: %q, %d, %q, %v", arg, dir, bytes, talk, err)
		}
	}
}
