package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"carma/runner/certs"
	"carma/runner/httplimit"

	"golang.org/x/net/netutil"
)

// remoteConnections limits the connections over TLS.
const remoteConnections = 1024

// SetRemote sets where Run answers users of the cluster over TLS. Call it before Run, which
// closes l.
func (s *Server) SetRemote(l net.Listener, certificate certs.Get) {
	s.remoteAt, s.remoteCert = l, certificate
}

// serveRemote answers over TLS until ctx ends.
func (s *Server) serveRemote(ctx context.Context, front http.Handler) error {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, // terminals hijack connections, impossible in HTTP/2
		GetCertificate: s.remoteCert,
	}
	l := netutil.LimitListener(s.remoteAt, httplimit.PlacesFor(remoteConnections, 8))
	return s.serve(ctx, tls.NewListener(l, config), s.c.Guard(front))
}
