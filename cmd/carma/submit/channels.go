package submit

import (
	"context"
	"errors"
	"net/http"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/notifyfile"
	"carma/runner/api"
)

// Channels sends the user's message channels to the daemon, if there is a notify.yaml,
// because the daemon reads no files of users. An error in the file is returned. A refusal
// by the daemon causes only a message, because tasks run without channels.
func Channels(ctx context.Context, a *cli.App, client *api.Client) error {
	path := notifyfile.Path()
	if path == "" {
		return nil
	}
	s, known, err := notifyfile.Read(path, false)
	if err != nil {
		return cli.Usagef("", "%v", err)
	}
	if !known {
		return nil
	}
	_, err = client.SetNotify(ctx, s)
	var status *api.StatusError
	switch {
	case err == nil, cli.Away(err): // the submission reports that no daemon answers
	case errors.As(err, &status) && status.Status == http.StatusNotFound: // an older daemon
	case errors.As(err, &status):
		a.Say("messages: the daemon does not take the channels of %s: %s", path, status.Detail)
	default:
		return err
	}
	return nil
}
