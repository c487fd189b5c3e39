package main

import (
	"errors"

	"carma/configs"
	"carma/containers"
	"carma/containers/engines"
)

// openDriver opens what runs the containers. Nothing is sent yet.
func openDriver(config configs.Config) (containers.Driver, error) {
	engine, ok := engines.Named(config.Driver)
	if !ok {
		return nil, usagef("", "driver: there is no %q", config.Driver) // configuration has been checked
	}
	d, err := engine.Open(engines.Settings{
		DataDir: config.DataDir, Network: config.Network, Attach: containers.Attach(config.Attach), Init: initProgram(),
		DockerHost: config.DockerHost, ContainerdAddress: config.ContainerdAddress, ContainerdNamespace: config.ContainerdNamespace,
	})
	if errors.Is(err, engines.ErrSettings) {
		return nil, usagef("", "%v", err)
	}
	return d, err
}
