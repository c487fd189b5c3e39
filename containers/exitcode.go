package containers

import "carma/internal/lazyregexp"

// A runtime names the program, and then why it cannot be run.
var (
	programGone   = lazyregexp.New(`exec: "[^"]*": (executable file not found|not found|(stat |lstat )?.*no such file or directory)`)
	programUnable = lazyregexp.New(`exec: "[^"]*": .*(permission denied|is a directory|not a directory|exec format error)|exec format error`)
)

// ExitCode is the code that docker run ends with after a start that failed: 127 if the
// program is not there, 126 if it cannot be run, and 125 for all else.
func (f *StartFault) ExitCode() int {
	switch {
	case f.Scope != ScopeTask:
		return 125
	case programGone().MatchString(f.Text):
		return 127
	case programUnable().MatchString(f.Text):
		return 126
	}
	return 125
}
