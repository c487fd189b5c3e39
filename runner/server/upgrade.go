package server

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"carma/runner/api"

	"github.com/danielgtaylor/huma/v2"
)

// Upgrade takes over the connection of a request, and closes it when serve
// returns or the daemon stops.
func (s *Server) Upgrade(serve func(context.Context, *api.Terminal)) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		w, ok := hc.BodyWriter().(http.ResponseWriter)
		if !ok || !strings.EqualFold(hc.Header("Upgrade"), api.TerminalProtocol) {
			hc.SetHeader("Upgrade", api.TerminalProtocol)
			hc.SetStatus(http.StatusUpgradeRequired)
			return
		}
		done := s.Upgraded() // before the server stops tracking the connection
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			done()
			hc.SetStatus(http.StatusInternalServerError)
			return
		}
		defer done()
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Time{})
		stop := context.AfterFunc(hc.Context(), func() { _ = conn.Close() })
		defer stop()
		if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+api.TerminalProtocol+"\r\n\r\n"); err != nil {
			return
		}
		serve(hc.Context(), api.NewTerminal(&hijacked{conn, buffered.Reader}))
	}}
}

// hijacked is a connection with the bytes already read from it.
type hijacked struct {
	net.Conn
	r *bufio.Reader
}

func (h *hijacked) Read(p []byte) (int, error) { return h.r.Read(p) }
