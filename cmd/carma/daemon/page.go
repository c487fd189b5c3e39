package daemon

import (
	"net"

	"github.com/rs/zerolog"

	"carma/cmd/carma/settings"
	"carma/runner/server"
)

// openPage opens the listener of the page. Tasks run without the page too, so an error is
// logged, and shown to users who request the page.
func openPage(config settings.Config, log zerolog.Logger) (page server.Page) {
	if config.Web == "off" {
		return page
	}
	missing := func(what string, err error) {
		page.Note = what + ": " + err.Error()
		log.Error().Err(err).Str("at", what).Msg("the page cannot be served there")
	}
	socket, err := settings.PageSocket(config.Socket)
	var l net.Listener
	if err == nil {
		l, err = server.Listen(socket)
	}
	if err == nil {
		page.Listeners, page.Socket = append(page.Listeners, l), socket
	} else {
		missing(socket, err)
	}
	address, err := settings.PagePort(config.Web)
	if err == nil && address == "" {
		return page
	}
	if err == nil {
		l, err = net.Listen("tcp", address)
	}
	if err == nil {
		page.Listeners, page.Address = append(page.Listeners, l), l.Addr().String()
		log.Info().Str("address", page.Address).Msg("the page is served; carma web opens it")
	} else {
		missing(address, err)
	}
	return page
}
