package cli

import (
	"time"

	"carma/runner/api"
)

// ClosedBy returns who closed something, why and until when: " by ada: loud fan, until
// Mon 14:00".
func ClosedBy(c *api.Closure) string {
	text := ""
	if c.By != "" {
		text = " by " + Printable(c.By)
	}
	if c.Why != "" {
		text += ": " + OneLine(Printable(c.Why))
	}
	if !c.Until.IsZero() {
		text += ", until " + c.Until.Local().Format(time.DateTime)
	}
	return text
}
