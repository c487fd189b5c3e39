package admission

import (
	"path/filepath"

	"carma/runner/api"
	"carma/runner/request"
	"carma/runner/suspend/leave"
)

// checkLeave refuses paths that cannot be a folder in the container.
func checkLeave(s api.Submit) error {
	path := leave.Path(s.Env)
	switch {
	case path == "":
		return nil
	case s.Bare():
		return request.Errorf(400, "%s is for tasks with an image; leave it out", leave.Variable)
	case !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/":
		return request.Errorf(400, "%s=%s: it is where the container gets a folder; write an absolute path that is free there, for example /run/carma-leave", leave.Variable, path)
	}
	for _, m := range s.Mounts {
		if m.Target == path {
			return request.Errorf(400, "%s=%s: -v mounts another folder there; name a path that is free", leave.Variable, path)
		}
	}
	return nil
}
