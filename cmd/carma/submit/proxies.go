package submit

import (
	"carma/cmd/carma/cli"
	"carma/cmd/carma/dockerconfig"
	"carma/runner/api"
)

// Proxies sets the proxies of the user's docker configuration in the containers of a
// submission and, unless it is nil, of a suite, as docker run and docker compose do. A
// cluster has its own proxies.
func Proxies(a *cli.App, client *api.Client, tasks []api.Submit, around *api.Suite) {
	if client.Remote() {
		return
	}
	all := make([]*api.Submit, 0, len(tasks))
	for i := range tasks {
		all = append(all, &tasks[i])
	}
	if around != nil {
		for i := range around.Helpers {
			all = append(all, &around.Helpers[i].Container)
		}
	}
	for _, s := range all {
		if s.Image == "" {
			continue
		}
		env, err := dockerconfig.WithProxies(s.Env)
		if err != nil {
			a.Say("%v; its proxies are left out", err)
			return
		}
		s.Env = env
	}
}
