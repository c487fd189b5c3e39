// Package dockerconfig reads the user's docker configuration: credentials for registries, and
// proxies for containers. It reads config.json where docker does, in the folder
// DOCKER_CONFIG or ~/.docker, and runs the credential helpers that are named there.
package dockerconfig

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"

	"carma/containers"
)

// dockerHub is the key under which docker stores the credential for docker.io.
const dockerHub = "https://index.docker.io/v1/"

func load() (*configfile.ConfigFile, error) {
	dir := os.Getenv(config.EnvOverrideConfigDir)
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return configfile.New(""), nil // a user without a home has no configuration
		}
		dir = filepath.Join(home, ".docker")
	}
	c, err := config.Load(dir)
	if err != nil {
		return nil, fmt.Errorf("docker's configuration: %w", err)
	}
	return c, nil
}

// Credentials returns the user's credentials for the registries of images, by registry.
// An image has none if the user is not logged in to its registry. If a credential cannot
// be read, Credentials returns the others and the error.
func Credentials(images []string) (map[string]containers.Credential, error) {
	c, err := load()
	if err != nil {
		return nil, err
	}
	by := map[string]containers.Credential{}
	asked := map[string]bool{}
	for _, image := range images {
		registry, err := containers.RegistryOf(image)
		if err != nil || asked[registry] {
			continue // the daemon reports the error in the image's name
		}
		asked[registry] = true
		key := registry
		if registry == "docker.io" {
			key = dockerHub
		}
		a, failed := c.GetAuthConfig(key)
		if failed != nil {
			return by, fmt.Errorf("your credential for %s: %w", registry, failed)
		}
		one := containers.Credential{Username: a.Username, Password: a.Password, IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken}
		if one != (containers.Credential{}) {
			by[registry] = one
		}
	}
	return by, nil
}

// WithProxies returns an environment with the proxies of docker's configuration, as
// docker run and docker compose set them in containers. It does not change variables in
// env. On an error it returns env.
func WithProxies(env []string) ([]string, error) {
	c, err := load()
	if err != nil {
		return env, err
	}
	proxies := c.ParseProxyConfig("", nil)
	out := slices.Clone(env)
	for _, name := range slices.Sorted(maps.Keys(proxies)) {
		if value := proxies[name]; value != nil && !sets(env, name) {
			out = append(out, name+"="+*value)
		}
	}
	return out, nil
}

// sets reports whether an environment sets a variable, or passes it on by name.
func sets(env []string, name string) bool {
	return slices.ContainsFunc(env, func(e string) bool { return e == name || len(e) > len(name) && e[:len(name)+1] == name+"=" })
}
