package cli

import (
	"io"

	"github.com/rs/zerolog"

	"carma/cmd/carma/settings"
)

// NewLogger returns the log of a command that runs until it is stopped, in the configured
// format: for people, or JSON.
func NewLogger(config settings.Config, w io.Writer) zerolog.Logger {
	if config.LogFormat == "console" || config.LogFormat == "auto" && IsTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w, NoColor: !IsTerminal(w), TimeFormat: "15:04:05.000"}
	}
	level, err := zerolog.ParseLevel(config.LogLevel)
	if err != nil {
		level = zerolog.InfoLevel // configs has validated it
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger()
}
