package pick

import (
	"context"
	"errors"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"carma/cmd/carma/cli"
	"carma/runner/api"
)

// Refs resolves the words of a command line to tasks of the daemon. A word is
//
//	17         a number
//	exp-3      a name
//	exp        the beginning of one name, of unfinished tasks before finished ones
//	'exp-*'    a pattern of names, with * and ?, for all unfinished tasks that fit;
//	           with finished also for the others
//	@  @~2     the last task that the caller submitted; the second before it
//
// A word that is none of these stays unchanged, and the daemon reports it. The error for
// an ambiguous word lists its tasks.
func Refs(ctx context.Context, client *api.Client, words []string, finished bool) ([]string, error) {
	refs := make([]string, 0, len(words))
	for _, word := range words {
		some, err := named(ctx, client, word, finished)
		if err != nil {
			return nil, err
		}
		refs = append(refs, some...)
	}
	return refs, nil
}

// Ref does the same as Refs, for a command about one task.
func Ref(ctx context.Context, client *api.Client, word string) (string, error) {
	refs, err := Refs(ctx, client, []string{word}, true)
	if err != nil {
		return "", err
	}
	if len(refs) > 1 {
		return "", cli.Usagef("name one", "%s is %d tasks: %s", word, len(refs), few(refs))
	}
	return refs[0], nil
}

func named(ctx context.Context, client *api.Client, word string, finished bool) ([]string, error) {
	switch {
	case strings.Trim(word, "0123456789") == "":
		return []string{word}, nil
	case word[0] == '@':
		return latest(ctx, client, word)
	case strings.ContainsAny(word, "*?["):
		return matching(ctx, client, word, finished)
	}
	_, err := client.Task(ctx, word)
	if status, ok := errors.AsType[*api.StatusError](err); !ok || status.Status != http.StatusNotFound {
		return []string{word}, nil // the task exists, or the command itself gets the error
	}
	for _, all := range []bool{false, true} {
		list, err := client.Tasks(ctx, api.ListOptions{All: all, Name: word + "*"})
		if err != nil {
			return nil, err
		}
		list = uniqueNames(fitting(list, word+"*"))
		if slices.ContainsFunc(list, func(t api.Task) bool { return t.Group == word }) {
			return []string{word}, nil // a group: the daemon decides whether the command accepts one
		}
		if len(list) > 0 {
			return only(word, list)
		}
	}
	return []string{word}, nil
}

// only returns the single task whose name begins with a word.
func only(word string, list []api.Task) ([]string, error) {
	if len(list) == 1 {
		return []string{strconv.FormatInt(list[0].ID, 10)}, nil
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	slices.Sort(names)
	return nil, cli.Usagef("name one, or '"+word+"*' for all", "%s may be %s", word, few(names))
}

// matching returns the tasks whose names match a pattern.
func matching(ctx context.Context, client *api.Client, pattern string, finished bool) ([]string, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, cli.Usagef("write for example 'exp-*'", "%q is no pattern", pattern)
	}
	list, err := client.Tasks(ctx, api.ListOptions{All: finished, Name: pattern})
	if err != nil {
		return nil, err
	}
	list = fitting(list, pattern)
	if len(list) == 0 {
		which := "no unfinished task"
		if finished {
			which = "no task"
		}
		return nil, cli.Usagef("carma ps -a lists all", "%s fits %s", which, pattern)
	}
	refs := make([]string, len(list))
	for i := range list {
		refs[i] = strconv.FormatInt(list[i].ID, 10)
	}
	return refs, nil
}

// latest returns the task that @ or @~N stands for.
func latest(ctx context.Context, client *api.Client, word string) ([]string, error) {
	back := 0
	if word != "@" {
		text, ok := strings.CutPrefix(word, "@~")
		n, err := strconv.Atoi(text)
		if !ok || err != nil || n < 0 || n > 100_000 {
			return nil, cli.Usagef("write @ for your last task, @~2 for the second before it", "%q is no task", word)
		}
		back = n
	}
	list, err := client.Tasks(ctx, api.ListOptions{All: true, Mine: true, Limit: back + 1})
	if err != nil {
		return nil, err
	}
	uid, err := client.UID(ctx)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(t api.Task) bool { return t.UID != uid })
	if len(list) <= back {
		return nil, cli.Usagef("carma ps -a --mine lists them", "%s: you have submitted %d tasks that are still known", word, len(list))
	}
	return []string{strconv.FormatInt(list[back].ID, 10)}, nil
}

func fitting(list []api.Task, pattern string) []api.Task {
	return slices.DeleteFunc(list, func(t api.Task) bool {
		ok, _ := path.Match(pattern, t.Name)
		return !ok
	})
}

// uniqueNames keeps the newest task of each name.
func uniqueNames(list []api.Task) []api.Task {
	seen := map[string]bool{} // only for look-up
	return slices.DeleteFunc(list, func(t api.Task) bool {
		old := seen[t.Name]
		seen[t.Name] = true
		return old
	})
}

// few formats a list of words for a line: the first ones, and the number of the others.
func few(words []string) string {
	const most = 5
	if len(words) <= most {
		return strings.Join(words, ", ")
	}
	return strings.Join(words[:most], ", ") + " and " + strconv.Itoa(len(words)-most) + " more"
}
