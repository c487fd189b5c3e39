package endtext

import (
	"strings"

	"carma/internal/lazyregexp"
)

// complaint matches the line in which shells, interpreters and command line parsers
// report why a program cannot begin, as in "train.py: error: unrecognized arguments:
// --epoch".
var complaint = lazyregexp.New(`^(\S+: )+((?i:error|fatal): \S|unknown \S|.*(command not found|No such file or directory|Permission denied|cannot execute))`)

// complained returns the last line of a program's output if it is such a complaint.
// Otherwise it returns nothing, because a program's last output may be anything, and is
// private to its owner.
func complained(tail []string) string {
	for i := len(tail) - 1; i >= 0; i-- {
		text := strings.TrimRight(ansi().ReplaceAllString(tail[i], ""), " \t\r")
		if text == "" {
			continue
		}
		if !complaint().MatchString(text) || levelName().MatchString(text) {
			return ""
		}
		return short(text)
	}
	return ""
}
