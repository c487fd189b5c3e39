package api

import "context"

// SubmitAll submits several tasks, all or none.
func (c *Client) SubmitAll(ctx context.Context, s Submission) (SubmittedAll, error) {
	return SubmitTasks.send(ctx, c, WithImages[Submission]{Body: s})
}

// Preview returns the result that a submission would have, without submitting it.
func (c *Client) Preview(ctx context.Context, s Submission) (Preview, error) {
	return PreviewTasks.send(ctx, c, WithImages[Submission]{Body: s})
}

// StopGroup requests the end of all unfinished tasks of a group.
func (c *Client) StopGroup(ctx context.Context, group string, r StopRequest) (Stopped, error) {
	return StopGroup.send(ctx, c, GroupStop{GroupPath{group}, r})
}

// Group lists the tasks of the newest group with a name, including finished ones, in
// order of number. It requests one page after the other.
func (c *Client) Group(ctx context.Context, group string) ([]Task, error) {
	all, page := []Task{}, GroupPage{GroupPath: GroupPath{group}}
	for {
		some, next, err := GetGroup.sendPage(ctx, c, page)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if page.After = next; next == 0 {
			return all, nil
		}
	}
}
