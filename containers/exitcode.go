package containers

import "carma/internal/lazyregexp"

// A runtime's message names the program, then the reason why it cannot be run.
var (
	programGone   = lazyregexp.New(`exec: "[^"]*": (executable file not found|not found|(stat |lstat )?.*no such file or directory)`)
	programUnable = lazyregexp.New(`exec: "[^"]*": .*(permission denied|is a directory|not a directory|exec format error)|exec format error`)
)

// ExitCode returns the exit code of docker run after a failed start: 127 if the program
// does not exist, 126 if it cannot be run, otherwise 125.
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
