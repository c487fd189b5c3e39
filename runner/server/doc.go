// Package server answers the API at the daemon's addresses: the unix socket, the port for
// users of the cluster over TLS, the sockets and ports of the page, and the port for
// Prometheus.
//
// A [Server] owns the listeners, the limits of connections and requests, and the logins of
// the page. It ends streams and connections when the daemon stops, and refuses changes from
// then on. The handler of the API is given to it.
package server
