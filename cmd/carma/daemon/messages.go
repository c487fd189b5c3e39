package daemon

import (
	"fmt"
	"os"

	"github.com/rs/zerolog"

	"carma/cmd/carma/notifyfile"
	"carma/cmd/carma/settings"
	"carma/runner/notify"
)

// messageRules reads the administrator's file about messages. An error in it does not
// keep a daemon from starting: the log and the doctor report it, and tasks continue.
func messageRules(config settings.Config, log zerolog.Logger) notify.Rules {
	path := config.Notify
	switch path {
	case "off":
		return notify.Rules{}
	case "auto":
		if os.Geteuid() != 0 {
			return notify.Rules{}
		}
		path = notifyfile.AdminPath
	}
	s, known, err := notifyfile.Read(path, true)
	for i := 0; err == nil && i < len(s.Allow); i++ {
		if _, bad := notify.ParseAllowed(s.Allow[i]); bad != nil {
			err = fmt.Errorf("%s: allow: %w", path, bad)
		}
	}
	if err == nil && !known && config.Notify != "auto" {
		err = fmt.Errorf("%s is not there", path)
	}
	if err != nil {
		log.Error().Err(err).Msg("the administrator's channels for messages are not in force")
		return notify.Rules{Trouble: err.Error()}
	}
	return notify.Rules{Server: s}
}
