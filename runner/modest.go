package runner

import (
	"bytes"
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

	"github.com/danielgtaylor/huma/v2"
)

const (
	// bodyLimit is how long a request's body may take to arrive.
	bodyLimit = 5 * time.Second
	// maxValues is how many texts, numbers and lists one submission may have,
	// taskValues one task and any other request.
	maxValues  = 500_000
	taskValues = 20_000
	// maxComplaints is how many mistakes of one task an answer names.
	maxComplaints = 10
	// largeRequest is a body after which the memory that it took is given back.
	largeRequest = 1 << 20
)

// modest refuses requests that would take many times their size in memory: with
// very many values, or very many mistakes, each of which would become a part of
// the answer. So tasks are checked one by one, and the first wrong one ends it.
func modest(a huma.API, next http.Handler) http.Handler {
	registry := a.OpenAPI().Components.Schemas
	task := registry.Schema(reflect.TypeFor[api.Submit](), true, "")
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Body == nil || req.Body == http.NoBody {
			next.ServeHTTP(w, req)
			return
		}
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(bodyLimit)) // a test's writer has none
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxSubmission))
		_ = control.SetReadDeadline(time.Time{})
		if len(body) > largeRequest {
			defer debug.FreeOSMemory()
		}
		if err == nil {
			err = checkShape(req.URL.Path, body, func(one any, at int) error { return mistakes(registry, task, one, at) })
		}
		if err != nil {
			writeProblem(w, err)
			return
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, req)
	})
}

// checkShape refuses a body with too many values, and hands each of its tasks to
// check, until one is wrong. at is -1 for a task that is a request by itself.
// What is no JSON is left to others.
func checkShape(path string, body []byte, check func(task any, at int) error) error {
	tasks := []json.RawMessage{body}
	several := strings.HasPrefix(path, "/v1/submissions")
	if several {
		values, parts := count(body)
		if parts > api.MaxTasks {
			return refusef(422, "a submission has at most %d tasks; submit the others in another one", api.MaxTasks)
		}
		if values > maxValues {
			return refusef(422, "the submission has %d values, and at most %d are taken at once; submit the tasks in several parts", values, maxValues)
		}
		var s struct {
			Tasks []json.RawMessage `json:"tasks"`
		}
		if json.Unmarshal(body, &s) != nil {
			return nil
		}
		tasks = s.Tasks
	}
	for i, text := range tasks {
		if values, _ := count(text); values > taskValues {
			return refusef(422, "a task has %d arguments, variables and other values, and at most %d are taken; put them into a file", values, taskValues)
		}
		if !several {
			if i = -1; path != "/v1/tasks" {
				return nil
			}
		}
		var one any
		if json.Unmarshal(text, &one) != nil {
			return nil
		}
		if err := check(one, i); err != nil {
			return err
		}
	}
	return nil
}

// count is how many values JSON has, and how many elements the lists have that
// are fields of the whole. It takes no memory.
func count(text []byte) (values, parts int) {
	depth, quoted := 0, false
	second := byte(0) // what the second level is
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			values++
			if depth++; depth == 2 {
				if second = c; c == '[' {
					parts++
				}
			}
		case c == '}' || c == ']':
			depth--
		case c == ',':
			values++
			if depth == 2 && second == '[' {
				parts++
			}
		}
	}
	return values, parts
}

// mistakes are the first ones of a task, against its schema.
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
	return huma.NewError(http.StatusUnprocessableEntity, "validation failed", found.Errors[:min(len(found.Errors), maxComplaints)]...)
}

// writeProblem answers what was refused before the API saw it.
func writeProblem(w http.ResponseWriter, err error) {
	var large *http.MaxBytesError
	var answer huma.StatusError
	var refused *RequestError
	switch {
	case errors.As(err, &answer):
	case errors.As(err, &refused):
		answer = huma.NewError(refused.Status, refused.Text)
	case errors.As(err, &large):
		answer = huma.NewError(http.StatusRequestEntityTooLarge, fmt.Sprintf("request body is too large limit=%d bytes", large.Limit))
	default:
		answer = huma.NewError(http.StatusRequestTimeout, "the request did not arrive within "+bodyLimit.String())
	}
	text, _ := json.Marshal(answer)
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(answer.GetStatus())
	_, _ = w.Write(text)
}
