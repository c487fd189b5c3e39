package tasks

import (
	"context"

	"carma/cmd/carma/pick"
	"carma/runner/api"
)

// listed returns the tasks for ps: the tasks selected by flags, restricted to the named
// groups and tasks if there are any.
func listed(ctx context.Context, client *api.Client, s *pick.Selector, names []string) ([]api.Task, error) {
	if len(names) == 0 {
		return s.Tasks(ctx, client)
	}
	all := []api.Task{}
	for _, name := range names {
		of := *s
		of.Group = name
		list, err := of.Tasks(ctx, client)
		if err == nil && len(list) == 0 {
			list, err = namedTasks(ctx, client, name)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

func namedTasks(ctx context.Context, client *api.Client, word string) (list []api.Task, err error) {
	refs, err := pick.Refs(ctx, client, []string{word}, true)
	for _, ref := range refs {
		t, wrong := client.Task(ctx, ref)
		if wrong != nil {
			return nil, wrong
		}
		list = append(list, t)
	}
	return list, err
}
