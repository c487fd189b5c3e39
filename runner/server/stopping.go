package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"carma/runner/api"
	"carma/runner/request"
)

// retryAfter is the number of seconds after which a caller may try again while the daemon
// stops.
const retryAfter = 5

// whileStopping answers 503 once ctx has ended. It answers so to requests that would
// change something, and in place of the errors of requests that are cancelled then.
func whileStopping(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if ctx.Err() != nil && req.Method != http.MethodGet {
			refuseStopping(w)
			return
		}
		next.ServeHTTP(&stoppingWriter{ResponseWriter: w, stopping: func() bool { return ctx.Err() != nil }}, req)
	})
}

// stoppingWriter answers 503 in place of an error while the daemon stops.
type stoppingWriter struct {
	http.ResponseWriter
	stopping func() bool
	wrote    bool // the header was written
	dropped  bool // the handler's answer is not passed on
}

func (w *stoppingWriter) WriteHeader(status int) {
	if w.wrote {
		return
	}
	w.wrote = true
	cut := status == 499 || status == http.StatusUnprocessableEntity || status >= 500
	if cut && w.stopping() {
		w.dropped = true
		refuseStopping(w.ResponseWriter)
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *stoppingWriter) Write(b []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	if w.dropped {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// Flush is for the streams.
func (w *stoppingWriter) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok && !w.dropped {
		w.wrote = true
		f.Flush()
	}
}

// Unwrap is for [http.ResponseController].
func (w *stoppingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func refuseStopping(w http.ResponseWriter) {
	h := w.Header()
	h.Del("Content-Length")
	h.Set("Content-Type", "application/problem+json")
	h.Set(api.RetryAfter, strconv.Itoa(retryAfter))
	w.WriteHeader(http.StatusServiceUnavailable)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"title": http.StatusText(http.StatusServiceUnavailable), "status": http.StatusServiceUnavailable, "detail": request.ErrStopping.Text,
	})
}
