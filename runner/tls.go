package runner

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"carma/runner/certs"
	"carma/runner/httplimit"
	"carma/runner/loop"
	"carma/runner/record"
	"carma/runner/request"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/net/netutil"
)

// remoteConnections limits the connections over TLS.
const remoteConnections = 1024

// ServeRemote sets where RunAndServe answers users of the cluster over TLS. Call it
// before RunAndServe. The daemon closes l.
func (r *Runner) ServeRemote(l net.Listener, certificate certs.Get) {
	r.remoteAt, r.remoteCert = l, certificate
}

// serveRemote answers over TLS until ctx ends.
func (r *Runner) serveRemote(ctx context.Context) error {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, // terminals hijack connections, impossible in HTTP/2
		GetCertificate: r.remoteCert,
	}
	l := netutil.LimitListener(r.remoteAt, httplimit.PlacesFor(remoteConnections, 8))
	return r.serve(ctx, tls.NewListener(l, config), r.remote(r.front(ctx)))
}

// remote returns the API for users of a cluster.
func (r *Runner) remote(api http.Handler) http.Handler { return r.guarded(api) }

// noTask returns the answer for a task that does not exist, or that the caller may not
// know of.
func noTask(ref string) *request.Error {
	return request.Errorf(404, "no task %s; `carma ps -a` lists all", ref)
}

// hiddenGroup returns the error for a task that was not found. The error does not say
// that a group has this name, because the caller may not know of that group.
func hiddenGroup(err error, ref string) error {
	if isNotFound(err) {
		return noTask(ref)
	}
	return err
}

// numbered returns the path of a request about a task, with the task's number in place of
// its name.
func numbered(path string, rec *record.Record) string {
	rest := strings.TrimPrefix(path, "/v1/tasks/")
	_, after, more := strings.Cut(rest, "/")
	path = "/v1/tasks/" + url.PathEscape(strconv.FormatInt(int64(rec.ID()), 10))
	if more {
		path += "/" + after
	}
	return path
}

// writeRefusal answers a request that was refused before the API handled it.
func writeRefusal(w http.ResponseWriter, err error) {
	refused, ok := errors.AsType[*request.Error](err)
	if !ok {
		refused = request.Errorf(500, "%v", err)
		if errors.Is(err, context.Canceled) {
			refused = loop.ErrStopping
		}
	}
	text, _ := json.Marshal(huma.NewError(refused.Status, refused.Text))
	if refused.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(refused.Status)
	_, _ = w.Write(text)
}
