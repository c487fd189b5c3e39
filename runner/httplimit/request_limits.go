package httplimit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"carma/runner/api"
	"carma/runner/request"

	"github.com/danielgtaylor/huma/v2"
)

const (
	// bodyLimit is the time that the daemon waits for all of a request's body.
	bodyLimit = 5 * time.Second
	// maxBody is the largest size in bytes of a request that does not submit several
	// tasks.
	maxBody = 1 << 20
	// maxSubmission is the largest size in bytes of a submission of several tasks.
	maxSubmission = 16 << 20
	// maxValues is the largest number of texts, numbers and lists in one submission,
	// taskValues the largest in one task and in any other request.
	maxValues  = 500_000
	taskValues = 20_000
	// maxComplaints is the largest number of mistakes of one task that an answer names.
	maxComplaints = 10
	// largeRequest is the size in bytes above which the memory of a submission is released
	// at once.
	largeRequest = 1 << 20
)

// LimitRequests refuses requests that would take many times their size in memory. These
// are requests with very many values, and with very many mistakes, since the answer names
// each mistake. It decodes a submission of several tasks itself, task by task as they
// arrive, and stops at the first wrong task.
func LimitRequests(a huma.API, next http.Handler) http.Handler {
	registry := a.OpenAPI().Components.Schemas
	task := registry.Schema(reflect.TypeFor[api.Submit](), true, "")
	check := func(one any, at int) error { return mistakes(registry, task, one, at) }
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Body == nil || req.Body == http.NoBody {
			next.ServeHTTP(w, req)
			return
		}
		control := http.NewResponseController(w)
		req.Body = &patientReader{ReadCloser: req.Body, setTimeout: control.SetReadDeadline, left: bodyLimit}
		var err error
		if ofSeveral(req.URL.Path) {
			counted := &countingReader{Reader: http.MaxBytesReader(w, req.Body, maxSubmission)}
			var s api.Submission
			s, err = readSubmission(counted, check)
			if counted.n > largeRequest {
				defer debug.FreeOSMemory()
			}
			req = req.WithContext(context.WithValue(req.Context(), submissionKey{}, s))
			req.Body = io.NopCloser(strings.NewReader("{}"))
		} else {
			var body []byte
			if body, err = io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody)); err == nil {
				err = checkShape(req.URL.Path, body, check)
			}
			req.Body = io.NopCloser(bytes.NewReader(body))
		}
		if err != nil {
			writeProblem(w, err)
			return
		}
		_ = control.SetReadDeadline(time.Time{})
		next.ServeHTTP(w, req)
	})
}

// checkShape refuses a body with too many values, and a task that is wrong. A
// body that is not JSON is refused later.
func checkShape(path string, body []byte, check func(task any, at int) error) error {
	if err := checkValues(body); err != nil {
		return err
	}
	var one any
	if path != "/v1/tasks" || json.Unmarshal(body, &one) != nil {
		return nil
	}
	return check(one, -1)
}

func checkValues(task []byte) error {
	if values := count(task); values > taskValues {
		return request.Errorf(422, "a task has %d arguments, variables and other values, and at most %d are taken; put them into a file", values, taskValues)
	}
	return nil
}

// count returns how many values a JSON text has. It takes no memory.
func count(text []byte) (values int) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '{' || c == '[' || c == ','):
			values++
		}
	}
	return values
}

// mistakes returns the first mistakes of a task, by its schema, as one error. at is the
// task's index in a submission, or negative if the task is not in a submission.
func mistakes(registry huma.Registry, schema *huma.Schema, task any, at int) error {
	path, found := huma.NewPathBuffer(nil, 0), &huma.ValidateResult{}
	path.Push("body")
	if at >= 0 {
		path.Push("tasks")
		path.PushIndex(at)
	}
	huma.Validate(registry, schema, path, huma.ModeWriteToServer, task, found)
	if len(found.Errors) == 0 {
		return nil
	}
	some := found.Errors[:min(len(found.Errors), maxComplaints)]
	for _, err := range some {
		if d, ok := err.(*huma.ErrorDetail); ok { // the value may be the whole task
			d.Message, d.Location, d.Value = request.Clip(d.Message), request.Clip(d.Location), nil
		}
	}
	return huma.NewError(http.StatusUnprocessableEntity, "validation failed", some...)
}

// writeProblem answers a request that was refused before the API saw it.
func writeProblem(w http.ResponseWriter, err error) {
	var large *http.MaxBytesError
	var answer huma.StatusError
	var refused *request.Error
	switch {
	case errors.As(err, &answer):
	case errors.As(err, &refused):
		answer = huma.NewError(refused.Status, refused.Text)
	case errors.As(err, &large):
		answer = huma.NewError(http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has more than %d bytes, the most that is taken at once; submit the tasks in several parts, or put long texts into files", large.Limit))
	default:
		w.Header().Set("Connection", "close")
		answer = huma.NewError(http.StatusRequestTimeout, "the request did not arrive within "+bodyLimit.String())
	}
	text, _ := json.Marshal(answer)
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(answer.GetStatus())
	_, _ = w.Write(text)
}
