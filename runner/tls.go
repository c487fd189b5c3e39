package runner

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"carma/runner/record"
	"carma/runner/request"

	"github.com/danielgtaylor/huma/v2"
)

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
			refused = request.ErrStopping
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
