package api

import (
	"context"
	"net/http"
	"net/url"
)

// SubmitAll submits several tasks, all or none.
func (c *Client) SubmitAll(ctx context.Context, s Submission) (SubmittedAll, error) {
	return call[SubmittedAll](ctx, c, http.MethodPost, "/v1/submissions", s)
}

// Preview tells what would become of a submission, and submits nothing.
func (c *Client) Preview(ctx context.Context, s Submission) (Preview, error) {
	return call[Preview](ctx, c, http.MethodPost, "/v1/submissions/preview", s)
}

// StopGroup asks for all unfinished tasks of a group to end.
func (c *Client) StopGroup(ctx context.Context, group string, r StopRequest) (Stopped, error) {
	return call[Stopped](ctx, c, http.MethodPost, "/v1/groups/"+url.PathEscape(group)+"/stop", r)
}

// Group lists the tasks of the newest group of a name, finished ones too, in
// order of number.
func (c *Client) Group(ctx context.Context, group string) ([]Task, error) {
	return call[[]Task](ctx, c, http.MethodGet, "/v1/groups/"+url.PathEscape(group), nil)
}
