package request

import (
	"fmt"
	"strings"
)

// Error is a refused request. Status is the HTTP status, 4xx for a caller's error
// and 5xx otherwise. Text is a sentence for people.
type Error struct {
	Status int
	Text   string
}

// Error returns the sentence.
func (e *Error) Error() string { return e.Text }

// Errorf returns a refused request. The text is cut to [MaxText] bytes.
func Errorf(status int, format string, args ...any) *Error {
	return &Error{Status: status, Text: Clip(fmt.Sprintf(format, args...))}
}

// MaxText is the largest size in bytes of a sentence in an answer, since some sentences
// quote the request.
const MaxText = 2000

// Clip returns a text, and removes its middle if it is longer than [MaxText].
func Clip(text string) string {
	if len(text) <= MaxText {
		return text
	}
	return strings.ToValidUTF8(text[:MaxText/2], "") + " [...] " + strings.ToValidUTF8(text[len(text)-MaxText/2:], "")
}

// ErrStopping is the answer while the daemon stops.
var ErrStopping = &Error{Status: 503, Text: "the daemon is stopping; try again when it is back"}

// IsNotFound reports whether an error refuses a request about something that does not exist.
func IsNotFound(err error) bool {
	refused, ok := err.(*Error)
	return ok && refused.Status == 404
}
