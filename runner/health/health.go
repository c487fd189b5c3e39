// Package health says whether the daemon works (Unhealthy), and whether tasks can be stored and
// started now (Unready), and has the endpoints that answer so. It never waits for the loop.
package health

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"carma/runner/api"
	"carma/runner/endpoint"
	"carma/runner/monitor"
	"carma/runner/problems"

	"github.com/danielgtaylor/huma/v2"
)

// answer is a plain-text answer: "ok", or a line per problem with status 503.
type answer struct {
	Status      int
	ContentType string `header:"Content-Type"`
	Body        []byte
}

// answerOf returns the answer that reports problems.
func answerOf(problems []string) *answer {
	a := &answer{Status: http.StatusOK, ContentType: "text/plain; charset=utf-8", Body: []byte("ok\n")}
	if len(problems) > 0 {
		a.Status, a.Body = http.StatusServiceUnavailable, []byte(strings.Join(problems, "\n")+"\n")
	}
	return a
}

// Endpoint returns the endpoint of a route that reports problems.
func Endpoint(to api.Route[api.None, string], ok, bad string, problems func() []string) endpoint.Endpoint {
	return endpoint.Serve(to, endpoint.Rule{Anybody: true}, func(context.Context, *api.None) (*answer, error) { return answerOf(problems()), nil },
		func(_ huma.API, op *huma.Operation) {
			text := func(description string) *huma.Response {
				return &huma.Response{Description: description, Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: "string"}}}}
			}
			op.Responses = map[string]*huma.Response{"200": text(ok), "503": text(bad)}
		})
}

// Loop reports its problems without waiting for its present round. A [loop.Loop] is one.
type Loop interface {
	Stuck() string
	Full() string
	Stopping() bool
}

// Checks finds the daemon's problems. Safe for concurrent use.
type Checks struct {
	loop    Loop
	trouble *problems.Current
	monitor *monitor.Monitor
}

// New returns checks of the parts of a daemon.
func New(loop Loop, trouble *problems.Current, monitor *monitor.Monitor) *Checks {
	return &Checks{loop: loop, trouble: trouble, monitor: monitor}
}

// Unhealthy returns the problems that only a restart fixes. It does not ask the loop.
func (c *Checks) Unhealthy() []string {
	if text := c.loop.Stuck(); text != "" {
		return []string{text}
	}
	return nil
}

// Unready returns the problems that keep tasks from being stored or started. It does not
// ask the loop either.
func (c *Checks) Unready() []string {
	problems := c.Unhealthy()
	if c.loop.Stopping() {
		problems = append(problems, "the daemon is stopping")
	}
	if text := c.loop.Full(); text != "" {
		problems = append(problems, text)
	}
	all, _ := c.trouble.Now()
	for _, x := range all {
		problems = append(problems, x.String())
	}
	if failed := c.monitor.FailedSince(); !failed.IsZero() {
		problems = append(problems, fmt.Sprintf("the GPUs cannot be read since %s: see the daemon's log", failed.Format("2006-01-02 15:04:05")))
	}
	return problems
}
