package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"
)

// Route is a request of the API. In contains the parameters of the path and of the query,
// marked with the tags path and query, and a field Body if the request has one. Out is
// the answer. The daemon answers the routes, and [Client] sends them.
type Route[In, Out any] struct {
	ID, Method, Path, Summary string
}

// None is the input of a route without parameters, or the output of a route without an
// answer.
type None = struct{}

// Stream is the output of a route that answers with events or frames.
type Stream struct{}

// With is the input of a route that has only a body.
type With[B any] struct{ Body B }

// WithImages is the input of a route whose body names images.
type WithImages[B any] struct {
	RegistryAuth
	Body B
}

// TaskPath is the path parameter that names a task.
type TaskPath struct {
	Ref string `path:"task" doc:"a task's number or name"`
}

// OnTask is the input of a route that acts on a task.
type OnTask[B any] struct {
	TaskPath
	Body B
}

func onTask[B any](ref string, body B) OnTask[B] { return OnTask[B]{TaskPath{ref}, body} }

// send sends a request and returns the answer.
func (r Route[In, Out]) send(ctx context.Context, c *Client, in In) (Out, error) {
	out, _, err := r.sendPage(ctx, c, in)
	return out, err
}

// sendPage is like send, for a route that answers with a page of a list. next is the
// number with which to request the next page, or 0 if there is none.
func (r Route[In, Out]) sendPage(ctx context.Context, c *Client, in In) (out Out, next int64, err error) {
	path, body := r.request(in)
	resp, err := c.do(ctx, r.Method, path, body)
	if err != nil {
		return out, 0, err
	}
	out, err = read[Out](c, resp, r.Method+" "+path)
	_, _ = fmt.Sscan(resp.Header.Get("Carma-Next"), &next) // absent on the last page
	return out, next, err
}

// request returns the path with the query and the body of a request. Parameters with zero
// values are left out of the query.
func (r Route[In, Out]) request(in In) (path string, body any) {
	path, query := r.Path, url.Values{}
	v := reflect.ValueOf(in)
	for _, f := range reflect.VisibleFields(v.Type()) {
		x := v.FieldByIndex(f.Index)
		if name := f.Tag.Get("path"); name != "" {
			path = strings.Replace(path, "{"+name+"}", url.PathEscape(fmt.Sprint(x)), 1)
		}
		name, _, _ := strings.Cut(f.Tag.Get("query"), ",")
		switch some := x.Interface().(type) {
		default:
			if f.Name == "Body" {
				body = some
			} else if name != "" && !x.IsZero() {
				query.Set(name, fmt.Sprint(some))
			}
		case []string:
			query[name] = some
		case time.Time:
			if !some.IsZero() {
				query.Set(name, some.Format(time.RFC3339Nano))
			}
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, body
}

// The methods of routes.
const (
	get    = http.MethodGet
	post   = http.MethodPost
	put    = http.MethodPut
	patch  = http.MethodPatch
	remove = http.MethodDelete
)
