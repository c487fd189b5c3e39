package runner

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"carma/mapper"
	"carma/runner/api"
	"carma/runner/endpoint"

	"github.com/danielgtaylor/huma/v2"
)

// healthAnswer is a plain-text answer: "ok", or a line per problem with status 503.
type healthAnswer struct {
	Status      int
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func healthOf(problems []string) *healthAnswer {
	a := &healthAnswer{Status: http.StatusOK, ContentType: "text/plain; charset=utf-8", Body: []byte("ok\n")}
	if len(problems) > 0 {
		a.Status, a.Body = http.StatusServiceUnavailable, []byte(strings.Join(problems, "\n")+"\n")
	}
	return a
}

// health returns the endpoint of a route that reports problems.
func health(to api.Route[api.None, string], ok, bad string, problems func() []string) endpoint.Endpoint {
	return endpoint.Serve(to, endpoint.Rule{Anybody: true}, func(context.Context, *api.None) (*healthAnswer, error) { return healthOf(problems()), nil },
		func(_ huma.API, op *huma.Operation) {
			text := func(description string) *huma.Response {
				return &huma.Response{Description: description, Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: "string"}}}}
			}
			op.Responses = map[string]*huma.Response{"200": text(ok), "503": text(bad)}
		})
}

// unhealthy returns the problems that only a restart fixes. It does not ask the loop.
func (r *Runner) unhealthy() []string {
	if text := r.loop.Stuck(); text != "" {
		return []string{text}
	}
	return nil
}

// Turn waits until the loop has made a round, which shows that the daemon works, and
// returns nil.
func (r *Runner) Turn(ctx context.Context) error { return r.loop.Look(ctx, func(*mapper.State) {}) }

// unready returns the problems that keep tasks from being stored or started. It does not
// ask the loop either.
func (r *Runner) unready() []string {
	problems := r.unhealthy()
	if r.loop.Stopping() {
		problems = append(problems, "the daemon is stopping")
	}
	if text := r.loop.Full(); text != "" {
		problems = append(problems, text)
	}
	all, _ := r.trouble.Now()
	for _, x := range all {
		problems = append(problems, x.String())
	}
	if failed := r.monitor.FailedSince(); !failed.IsZero() {
		problems = append(problems, fmt.Sprintf("the GPUs cannot be read since %s: see the daemon's log", failed.Format("2006-01-02 15:04:05")))
	}
	return problems
}
