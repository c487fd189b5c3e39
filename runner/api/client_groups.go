package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// SubmitAll submits several tasks, all or none.
func (c *Client) SubmitAll(ctx context.Context, s Submission) (SubmittedAll, error) {
	return call[SubmittedAll](ctx, c, http.MethodPost, "/v1/submissions", s)
}

// Preview returns what would become of a submission, and submits nothing.
func (c *Client) Preview(ctx context.Context, s Submission) (Preview, error) {
	return call[Preview](ctx, c, http.MethodPost, "/v1/submissions/preview", s)
}

// StopGroup asks all unfinished tasks of a group to end.
func (c *Client) StopGroup(ctx context.Context, group string, r StopRequest) (Stopped, error) {
	return call[Stopped](ctx, c, http.MethodPost, "/v1/groups/"+url.PathEscape(group)+"/stop", r)
}

// Group lists the tasks of the newest group of a name, finished ones too, in
// order of number. It asks for one page after the other.
func (c *Client) Group(ctx context.Context, group string) ([]Task, error) {
	all, path := []Task{}, "/v1/groups/"+url.PathEscape(group)
	for next := int64(0); ; {
		q := ""
		if next > 0 {
			q = "?after=" + strconv.FormatInt(next, 10)
		}
		resp, err := c.do(ctx, http.MethodGet, path+q, nil)
		if err != nil {
			return nil, err
		}
		some, err := read[[]Task](c, resp, "the tasks of a group")
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if next, _ = strconv.ParseInt(resp.Header.Get("Carma-Next"), 10, 64); next == 0 {
			return all, nil
		}
	}
}
